"""LLVM IR generation and compilation: emitter, vector functions, target, JIT compiler, caches on disk."""
