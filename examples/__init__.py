"""Examples that run: each is one command, and sets its own scene."""
