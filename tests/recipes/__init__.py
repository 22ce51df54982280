"""Networks that people bring, exported by `kuiper export` and compared with PyTorch or onnxruntime.

`make recipes` runs `checks_with_torch.py`, on small inputs. It is not part of `make test`, which needs no PyTorch.
"""
