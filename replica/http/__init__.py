"""HTTP requests with deadlines: no redirects, clear errors, no secrets in messages."""
