"""Holes filled from windows' content, and how much to hold so that they are few."""
