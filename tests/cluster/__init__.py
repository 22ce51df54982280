"""Checks that need packages of a cluster: `make test-cluster` runs them."""
