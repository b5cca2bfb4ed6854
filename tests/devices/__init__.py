"""Tests of the executor on the emulated device over every order."""
