"""Parts of the connector ``mqtt``: options, packets, duplicate detection, connection."""
