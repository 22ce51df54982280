"""Memory of tensors: views and regions of buffers, the arena of a run, packed weights."""
