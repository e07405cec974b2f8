"""Aggregates of a key's events in a window, and the top k of keys by them."""
