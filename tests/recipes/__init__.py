"""Networks that people bring, exported by `kuiper export` and compared with PyTorch or onnxruntime.

`checks_with_torch.py` runs them all on small inputs; it is not part of `make test`, which needs no PyTorch.
"""
