"""Tests of the commands of the model checker: check, explain, mutants, and what they write."""
