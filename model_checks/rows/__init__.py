"""The row machine in the checker: its environment, a memory of symbolic rows, its scopes."""
