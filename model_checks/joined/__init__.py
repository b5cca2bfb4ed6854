"""Both machines and the join in the checker."""
