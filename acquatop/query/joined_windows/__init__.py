"""Several windows joined by key: what each holds is kept by itself, and joined at every close."""
