"""HTTP service: clients register queries and read their answers.

``service`` manages queries and answers, without HTTP. ``app`` maps HTTP to it. ``server`` runs
both, and ``page`` holds the files for a browser. ``client`` is for programs that use such a
service. It imports nothing else of this package.
"""
