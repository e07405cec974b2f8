"""The operators of a continuous query, in the order in which an event meets them.

decode (:mod:`connectors.mapping`) → :mod:`match <acquatop.operators.match>` →
:mod:`panes <acquatop.operators.panes>` → :mod:`topkn <acquatop.operators.topkn>` →
:mod:`certify <acquatop.operators.certify>`. All are free of any runtime: Spark and the
in-process runtime carry batches to the same code.
"""
