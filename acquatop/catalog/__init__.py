"""Catalog: from the IRIs of a query to the streams, services and graphs they stand for."""
