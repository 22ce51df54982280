"""Kernels: what writes the machine code of one operation for one exact shape."""
