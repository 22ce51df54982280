"""Runs: plans, the executor of the reference implementation, stop signals and traces."""
