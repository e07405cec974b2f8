"""Taxis nearest to each of many stands: queries that share one grid."""
