"""Many top-k queries over one stream: the same score, windows and k of any kind, answered together."""
