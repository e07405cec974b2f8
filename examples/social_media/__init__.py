"""Which users to contact now: mentioned most, and followed by most."""
