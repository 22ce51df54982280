"""Runs compiled steps: the native loop, and the threads that share it."""
