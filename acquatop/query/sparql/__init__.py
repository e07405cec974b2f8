"""Queries that are evaluated window by window with a SPARQL engine."""
