"""Engine: runs queries on streams, and manages batches, watermarks and state."""
