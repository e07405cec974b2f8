"""Experiments of the papers on all structures, and a grid of workloads to choose between them."""
