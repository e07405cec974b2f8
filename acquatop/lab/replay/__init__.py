"""How good answers are, compared with what is right."""
