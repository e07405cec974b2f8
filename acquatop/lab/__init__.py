"""The laboratory: record streams and remotes, replay them against an oracle, report the results."""
