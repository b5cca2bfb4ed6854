"""The block machine: who holds which physical block, and who may write it next."""
