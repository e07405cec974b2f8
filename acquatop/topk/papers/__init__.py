"""Structures of the papers that no query reaches yet: readable references, kept to compare with."""
