"""Builder from parse tree to abstract syntax tree, a file for each part of the language."""
