"""Random PyTorch modules: exported as they are drawn, and run by the native backend, by numpy and by PyTorch."""
