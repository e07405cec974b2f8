"""The best k of the last n events after every single event: one structure per file."""
