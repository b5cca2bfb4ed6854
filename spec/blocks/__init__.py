"""The block machine's rules I01 to I36, L01 and L02, its goals, and its naive oracle."""
