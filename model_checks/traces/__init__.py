"""Traces of the row machine that cover all edges of small scopes, and those that tell planted faults from the core.

`python -m tenure.model_checks.traces` writes them where the conformance kit reads them. The kit holds devices and
caches to them, and knows nothing of the model checker.
"""
