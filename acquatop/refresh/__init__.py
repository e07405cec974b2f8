"""Refresh: which keys to ask a remote for at a window's close."""
