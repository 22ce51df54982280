"""This server against others that run the same weights: `make bench-service`."""
