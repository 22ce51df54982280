"""Quantization of a float32 model: scales and zero points of its tensors, and their file."""
