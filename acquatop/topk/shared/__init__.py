"""Many top-k queries over one stream, answered together: same score, any windows and k."""
