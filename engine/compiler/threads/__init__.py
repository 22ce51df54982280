"""Execution of compiled steps: the native loop, and its threads."""
