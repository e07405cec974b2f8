"""Schedules: which windows are due, which are empty, and how many are skipped."""
