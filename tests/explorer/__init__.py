"""Tests of the explorer on machines whose answers are known beforehand."""
