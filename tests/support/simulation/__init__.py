"""Deterministic simulation: an engine in simulated time, under faults that one seed decides."""
