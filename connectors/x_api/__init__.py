"""The X API v2, as far as a stream of posts needs it: what is sent, what comes back, and what it means."""
