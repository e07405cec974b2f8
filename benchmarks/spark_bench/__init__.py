"""The parts of the benchmark of the Spark runtime: its data, the floor, the peers, ourselves."""
