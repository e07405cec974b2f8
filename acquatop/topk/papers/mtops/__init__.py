"""MTopS (Shastri et al., CIKM 2011): many top-k queries over one stream, as in the paper."""
