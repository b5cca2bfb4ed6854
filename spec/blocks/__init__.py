"""The block machine's rules I01 to I36, its goals, and its naive oracle."""
