"""Where tensors lie: views and regions of buffers, the arena of a run, packed weights."""
