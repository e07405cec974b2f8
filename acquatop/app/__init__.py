"""Applications on the engine: the command line, the HTTP service, and what watches a run."""
