"""Replay of recordings, and comparison of the answers with the right ones."""
