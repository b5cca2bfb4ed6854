"""Who carries the core's commands out: devices behind one port, and the executor that drives them."""
