"""Databases for tests, each with the same table of records."""
