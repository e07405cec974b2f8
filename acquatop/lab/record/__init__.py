"""Recordings: what a stream says and what a remote gives, written down while a query runs, to be replayed."""
