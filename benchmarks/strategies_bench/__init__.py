"""The papers' experiments with our structures and theirs, and a grid of workloads for whoever chooses between them."""
