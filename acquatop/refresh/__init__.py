"""Refresh: the choice of the keys to ask a remote for at a window's close."""
