"""The engine: queries come and go; one stream's batches, time and state."""
