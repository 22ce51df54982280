"""Quantization of a float32 model: which integers stand for its tensors, and the file that says so."""
