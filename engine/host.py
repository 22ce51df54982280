"""Processor features of this machine that compiled kernels use."""

from dataclasses import dataclass

from engine.backend import Backend, choose_backend


@dataclass(frozen=True, slots=True)
class Host:
    """The processor, as the compiler sees it.

    Attributes:
        vectors: name of its vector instructions.
        lanes: float32 numbers in a vector.
        registers: number of its vector registers.
        instructions: other features: `FMA`, `bf16`, `AMX`.
        llvm: versions of LLVM and of its binding.
    """

    vectors: str
    lanes: int
    registers: int
    instructions: tuple[str, ...]
    llvm: str


def describe_host() -> Host | None:
    """Return what the compiler has to work with; None where numpy runs all layers.

    Raises:
        BuildError: the environment requests an unavailable backend.
    """
    if choose_backend() is Backend.NUMPY:
        return None
    from engine.compiler.emit.target import host_target, llvm_versions  # noqa: PLC0415  # only now is llvmlite known to be there

    target = host_target()
    has = (("FMA", target.has_fma), ("bf16", target.has_bf16), ("AMX", target.has_tiles))
    library, binding = llvm_versions().split()
    return Host(
        vectors=target.name,
        lanes=target.lanes,
        registers=target.registers,
        instructions=tuple(name for name, is_there in has if is_there),
        llvm=f"{library}, llvmlite {binding}",
    )
