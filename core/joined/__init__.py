"""What joins block machine and row machine: state, leases, steps, reset. `tenure.core.cache` is the whole."""
