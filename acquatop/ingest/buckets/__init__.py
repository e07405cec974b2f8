"""Aggregates that stay on the executors: partial sums in files, one bucket of keys each."""
