"""What decides whether a request may be sent: quotas, accounts of queries, circuit breakers, block sizes.

Nothing here sends anything, waits, or reads a clock that it was not given.
"""
