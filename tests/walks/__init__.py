"""Tests of walks at volume."""
