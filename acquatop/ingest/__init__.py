"""Ingest: the first operators of a continuous query, from records to solutions in panes.

An event passes the operators in the order below. Incremental evaluation: decode
(:mod:`connectors.mapping`) → :mod:`match <acquatop.ingest.match>` → :mod:`panes
<acquatop.ingest.panes>` → :mod:`candidates <acquatop.query.topk.content>` → :mod:`certify
<acquatop.query.certify>`.

Evaluation window by window: decode → :mod:`window_graph <acquatop.query.sparql.window_graph>` →
:mod:`refresh <acquatop.refresh.service_refresh>` → :mod:`evaluate
<acquatop.query.sparql.evaluate>`.

Both end with :mod:`relation_to_stream <acquatop.answer.relation_to_stream>`. No operator depends on
a runtime: Spark and the in-process runtime carry batches to the same code.
"""
