"""Structures of the papers that no query uses: readable references for comparison."""
