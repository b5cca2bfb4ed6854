"""The row machine: which rows live in which slot, and which step may read them."""
