"""The spec judged: every rule, the oracle, and the goals."""
