"""The pure transition systems of Tenure.

What this package decides: which state follows a state and an event, and which commands somebody else must carry
out. What it refuses to decide: anything that needs a device, a clock, a thread, randomness or a file.
"""
