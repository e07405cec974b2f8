"""The passes from syntax tree to plan, one file each, named by their verb.

Every pass takes the tree (or the result of the pass before it) and a list to which it appends
what it finds wrong, so that several mistakes in one query are reported together.
"""
