"""The row machine's model: what it is made of, and that its scopes hold."""
