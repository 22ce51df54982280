"""Whole networks, run at sizes, batches and widths that nobody tuned for, against PyTorch."""
