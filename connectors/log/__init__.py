"""A durable log on a local disk, for what a source says once and never again.

Records are appended in blocks, which are Arrow batches with a checksum, to segments, which are files of a
bounded length. One process writes; others read what it has made durable. Positions are numbers of records, with
the place where they stand; segments are removed when nobody needs them any more.
"""
