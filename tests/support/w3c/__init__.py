"""The W3C's tests of SPARQL, as continuous queries over a window and static graphs.

``archive`` fetches them, ``manifests`` reads them, ``mapping`` makes queries of RSP-QL of them,
``runs`` evaluates those in engines, ``results`` compares.
"""
