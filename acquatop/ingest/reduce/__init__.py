"""Reducers: work on a stream's records at their place, before anything is sent to the driver.

On Spark a reducer runs in the executors, else in the thread that reads the stream. It makes a small
table of one partition's records. For its query, the tables of all partitions together say as much
as the records did:

- ``records``: the records themselves, for queries that are evaluated window by window;
- ``solutions``: the matches of a pattern, if they may come again; with ``pane_pruning`` only
  those that can be results;
- ``pane_partials``: aggregates per pane and key, if arrivals are distinct;
- ``pane_best``: the best k + n of each pane, if arrivals are distinct;
- ``shared_best``: the possible results of many queries, each with windows and k of its own.

A ``job`` decodes the records once, matches them once per pattern, and reduces them once for all
queries that share a reducer.
"""
