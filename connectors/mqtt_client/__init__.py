"""What the connector ``mqtt`` is made of: its options, the packets, what has been seen before, the connection."""
