"""The block machine in the checker: its environment and its scopes."""
