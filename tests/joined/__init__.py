"""Tests of block machine and row machine together."""
