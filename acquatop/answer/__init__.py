"""Answers: expected quality, rows, relation to stream, and the sinks they are written to."""
