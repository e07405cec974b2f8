"""Parts of the benchmark of the Spark runtime: data, floor, peers, and AcquaTop itself."""
