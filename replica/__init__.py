"""What the remote said, and when to ask it again.

The replica holds the last known values of a remote's items; a ranker says which to ask for
first; the maintainer asks, within a hard budget, and never waits past its deadline. Nothing
here knows of streams, windows or queries: keys and values are N-Triples terms.
"""
