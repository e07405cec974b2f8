"""The engine as a service: queries are registered, and their answers read, over HTTP.

``service`` knows queries and answers but no HTTP, ``app`` HTTP but no engine; ``server`` lets both run, ``page`` is
what a browser shows. ``client`` is for programs that use such a service, and needs nothing of the rest.
"""
