"""Long seeded histories of the whole cache on the emulated device: engine, builders, blocks, rows, device, faults."""

from tenure.simulation.history import Failure, Simulation, Summary

__all__ = ["Failure", "Simulation", "Summary"]
