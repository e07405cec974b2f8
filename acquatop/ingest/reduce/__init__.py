"""Reducers: what is done with a stream's records where they are, before anything is sent to the one who answers.

On Spark that is in the executors, else in the thread that reads the stream. A reducer makes of one partition's
records a small table, and all partitions' tables together say as much as the records did, as far as a query is
concerned:

- ``records``: the records themselves, for queries that are evaluated window by window;
- ``solutions``: what matches a pattern, where a newer arrival may replace an older one;
- ``pane_partials``: aggregates per pane and key, where arrivals are distinct;
- ``pane_best``: the best k + n of each pane, where arrivals are distinct.

``job`` has the records decoded once, matched once per pattern, and reduced once for all queries that share it.
"""
