"""Tenure: a formally checked cache core for LLM serving engines."""
