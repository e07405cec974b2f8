"""Top-k queries over aggregates per key."""
