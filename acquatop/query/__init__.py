"""Queries at work: the content of windows, their due times, and their results."""
