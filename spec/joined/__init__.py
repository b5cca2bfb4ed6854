"""The rules X01 to X05 of block machine and row machine together."""
