"""Tests of the row machine."""
