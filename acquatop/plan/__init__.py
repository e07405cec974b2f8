"""Plans: compiled queries bound to the catalog, their strategy, and groups that share work."""
