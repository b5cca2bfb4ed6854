"""The checker that explores the machines that ship."""
