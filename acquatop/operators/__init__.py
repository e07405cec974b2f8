"""The operators of a continuous query, in the order in which an event meets them.

Incrementally: decode (:mod:`connectors.mapping`) → :mod:`match <acquatop.operators.match>` →
:mod:`panes <acquatop.operators.panes>` → :mod:`topkn <acquatop.operators.topkn>` →
:mod:`certify <acquatop.operators.certify>`. Window by window: decode →
:mod:`window_graph <acquatop.operators.window_graph>` → :mod:`consult <acquatop.operators.consult>` →
:mod:`evaluate <acquatop.operators.evaluate>`. Then, for both,
:mod:`relation_to_stream <acquatop.operators.relation_to_stream>`. All are free of any runtime: Spark and the
in-process runtime carry batches to the same code.
"""
