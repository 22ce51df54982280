"""Networks that people bring, exported by `kuiper export` and compared with PyTorch or onnxruntime.

`make recipes` runs the files `checks_*.py`, on small inputs, with the weights and photographs of the packages in
`requirements.txt` where these can be installed. It is not part of `make test`, which needs no PyTorch.
"""
