"""Top k of a table that changes: queries without a window (Yi et al., ICDE 2003)."""
