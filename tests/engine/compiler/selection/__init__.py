"""Which kernels are chosen, and how threads share their work."""
