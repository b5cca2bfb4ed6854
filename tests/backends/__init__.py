"""Devices and the memory of the executor."""
