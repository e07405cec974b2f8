"""Requests over HTTP that end in time and stay where they are sent; what goes wrong is said, what is secret is not."""
