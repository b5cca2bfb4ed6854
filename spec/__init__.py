"""What must hold, and the naive oracles that say what the core should have answered."""
