"""Tests of the contracts that CrossHair confirms."""
