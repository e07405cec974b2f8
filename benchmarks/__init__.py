"""Benchmarks: programs that print a table with machine, versions and floor of the same run.

``./run bench`` lists them. Figures are ratios within one run; absolute times vary by half from run
to run.
"""
