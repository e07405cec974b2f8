"""Top-k queries over a stream joined with a remote."""
