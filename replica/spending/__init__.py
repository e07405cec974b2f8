"""Permission to send requests: quotas, accounts of queries, circuit breakers, block sizes.

Nothing here sends anything, waits, or reads a clock that was not passed in.
"""
