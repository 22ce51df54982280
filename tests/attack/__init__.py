"""Attacks on a real server by clients that mean it ill, and what others notice of them: `make attack`."""
