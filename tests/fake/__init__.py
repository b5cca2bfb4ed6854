"""Tests of the emulated device, and of what is simulated on it."""
