"""Writes LLVM IR and compiles it: the emitter, functions of vectors, the target, the compiler behind them."""
