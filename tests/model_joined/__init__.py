"""The joined cache's model."""
