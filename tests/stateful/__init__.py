"""Core and oracle side by side, over histories that nobody wrote."""
