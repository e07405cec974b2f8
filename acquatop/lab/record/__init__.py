"""Recordings of a running query's stream and remote, for replay."""
