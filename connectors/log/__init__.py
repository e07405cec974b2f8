"""Durable log on a local disk, for data that a source sends only once.

Records are appended in blocks (Arrow batches with a checksum) to segments (files of bounded
length). One process writes; others read the durable part. Positions are record numbers with their
places in the files. Segments are removed when they are no longer needed.
"""
