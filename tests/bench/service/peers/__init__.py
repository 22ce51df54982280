"""Applications that run the same weights on other servers; each runs in an environment of its own."""
