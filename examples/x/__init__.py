"""X: the users to contact now, from its posts, mentioned most and followed by most."""
