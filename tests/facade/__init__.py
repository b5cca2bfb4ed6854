"""The facade: what an engine imports, on real memory."""
