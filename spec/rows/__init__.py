"""The row machine's rules R01 to R24, its goals, its naive oracle, and a naive memory that carries its commands out."""
