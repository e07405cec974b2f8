"""Passes from syntax tree to plan: one file each, named by a verb.

Every pass takes the tree (or the result of the pass before it) and a list to which it appends the
problems found, so that several mistakes in one query are reported together.
"""
