"""Passes over the graph: fusion, quantization, and memory formats."""
