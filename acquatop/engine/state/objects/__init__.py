"""State in an object store: a chain of records that are written once, and a lease."""
