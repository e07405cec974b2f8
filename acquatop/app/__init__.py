"""Applications on the engine: the command line, the HTTP service, and the observers of a run."""
