"""The papers' structures on sorted lists: the readable references."""
