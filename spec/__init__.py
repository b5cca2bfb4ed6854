"""What must hold, and the naive oracles that say what the core should have answered."""

from tenure.spec.rows.reference import Emitted, Materialized, ReferenceCache

__all__ = ["Emitted", "Materialized", "ReferenceCache"]
