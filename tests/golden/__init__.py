"""Tests of Tenure."""
