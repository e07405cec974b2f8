"""Client for the part of the X API v2 that a stream of posts needs: requests and replies."""
