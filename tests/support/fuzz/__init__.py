"""Items of all kinds, sent into whole engines from a seed, and judged by plain Python."""
