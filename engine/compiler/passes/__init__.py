"""Passes over the graph: fusion, and the choice of where each tensor lies."""
