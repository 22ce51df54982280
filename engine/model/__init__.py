"""Model: the operators and operands of PNNX files, linked, ordered, and bound to their layers."""
