"""Plans: a compiled query bound to the catalog, its strategy, and which queries share work."""
