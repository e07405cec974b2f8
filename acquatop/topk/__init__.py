"""Top-k structures over sliding windows: one file each, free of any runtime."""
