"""Social media: the users to contact now, mentioned most and followed by most."""
