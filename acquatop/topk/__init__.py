"""Top-k structures over sliding windows: one per file, independent of any runtime."""
