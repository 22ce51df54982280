"""The modules in examples/ add what they say, from outside the packages, and nothing of it stays."""
