"""The operators of a continuous query, in the order in which an event meets them.

Incrementally: decode (:mod:`connectors.mapping`) → :mod:`match <acquatop.ingest.match>` →
:mod:`panes <acquatop.ingest.panes>` → :mod:`topkn <acquatop.query.topk.content>` →
:mod:`certify <acquatop.query.certify>`. Window by window: decode →
:mod:`window_graph <acquatop.query.sparql.window_graph>` → :mod:`consult <acquatop.refresh.service_refresh>` →
:mod:`evaluate <acquatop.query.sparql.evaluate>`. Then, for both,
:mod:`relation_to_stream <acquatop.answer.relation_to_stream>`. All are free of any runtime: Spark and the
in-process runtime carry batches to the same code.
"""
