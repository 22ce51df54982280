"""Random networks in the words of PyTorch's quantized modules, against PyTorch."""
