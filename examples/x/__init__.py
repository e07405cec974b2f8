"""Whom to contact now, from the posts of X: mentioned most, and followed by most."""
