"""Benchmarks: programs that print a table with the machine, the versions and the floor in the same run.

``./run bench`` lists them. Figures are ratios within one run; absolute times vary by half from run to run.
"""
