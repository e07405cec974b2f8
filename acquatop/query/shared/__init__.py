"""Top-k queries with windows of their own that share one structure."""
