"""Tests of the block machine's model: what the checker relies on when it says that the block machine is right."""
