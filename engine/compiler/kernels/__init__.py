"""Kernels: code generators of one operation for one exact shape."""
