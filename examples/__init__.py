"""Runnable examples: each is one command that starts everything it needs."""
