"""Replica of remote data: the last known values of a remote's items, refreshed within a budget.

Part of AcquaTop. A ranker orders the keys to refresh. The maintainer sends the requests, within a
hard budget, and never waits past its deadline. The package knows nothing of streams, windows or
queries: keys and values are N-Triples terms.
"""
