"""Convolution, linear layer and matrix product: one contraction in every precision, for static and runtime sizes."""
