"""Compiles plans to machine code: operators -> graph -> kernels -> programs."""
