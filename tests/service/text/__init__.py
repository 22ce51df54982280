"""Models that take texts, from the body to the vector."""
