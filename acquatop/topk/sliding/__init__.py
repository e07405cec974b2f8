"""The best k of the last n events, known after every single event: one structure per file, one contract."""
