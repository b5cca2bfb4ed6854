"""Cores with one fault each, which the checker must refute."""
