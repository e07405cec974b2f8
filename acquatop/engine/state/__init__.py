"""Durable state of an engine: snapshots and a journal of opaque bytes that survive a kill."""
