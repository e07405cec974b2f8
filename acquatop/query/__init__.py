"""Queries at work: what a window holds, when it is due, and its result."""
