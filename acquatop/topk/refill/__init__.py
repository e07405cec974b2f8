"""Refill of holes from the windows' content, and control of how many rows are held."""
