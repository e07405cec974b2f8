"""Materialised top-k views (Yi et al., ICDE 2003): a table's view and its refill model."""
