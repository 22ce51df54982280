"""Binding: the arguments and results of a layer's function, and an operator's operands, attributes and parameters."""
