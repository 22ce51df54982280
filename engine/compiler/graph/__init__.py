"""The compiler's graph: nodes, and the tensors between them."""
