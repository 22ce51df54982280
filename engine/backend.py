"""Backends of a graph: compiled kernels, or each layer's numpy forward."""

import importlib.util
import os
from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache
from pathlib import Path

from engine.dtypes import Array
from engine.errors import BuildError
from engine.pnnx.archive import EntryCache
from engine.quantization.int4 import rounded_to_int4
from engine.quantization.weights import QuantizedWeights, quantize_weights
from engine.run.executor import Executor, ExecutorOptions
from engine.run.numpy_executor import NumpyExecutor
from engine.run.plan import Planner
from engine.run.verification import Verify

VARIABLE = "KUIPER_BACKEND"
"""Environment variable that chooses where the caller does not."""


class Backend(Enum):
    """Backend of a graph's layers."""

    NUMPY = "numpy"
    """Every layer's numpy forward."""
    NATIVE = "native"
    """Compiled kernels; numpy for unsupported operators."""
    AUTO = "auto"
    """NATIVE where llvmlite is installed and knows the processor, else NUMPY."""


def choose_backend(wanted: Backend | str | None = None) -> Backend:
    """Return NUMPY or NATIVE.

    Args:
        wanted: the requested backend; None for `KUIPER_BACKEND`, AUTO where that is unset.

    Raises:
        BuildError: there is no such backend, or NATIVE is requested and unavailable.
    """
    text = wanted.value if isinstance(wanted, Backend) else wanted or os.environ.get(VARIABLE) or "auto"
    try:
        backend = Backend(text.lower())
    except ValueError as error:
        names = ", ".join(item.value for item in Backend)
        raise BuildError(f"backend {text!r} is unknown; expected one of {names}") from error
    if backend is Backend.NUMPY:
        return backend
    reason = _obstacle()
    if reason is not None and backend is Backend.NATIVE:
        raise BuildError(f"the native backend is not available: {reason}")
    return Backend.NATIVE if reason is None else Backend.NUMPY


def make_executor(
    backend: Backend,
    plan: Planner,
    inputs: Sequence[str],
    outputs: Sequence[str],
    options: ExecutorOptions,
    content: Callable[[], str],
) -> Executor:
    """Return what runs a graph on a backend.

    Args:
        backend: NUMPY or NATIVE.
        plan: makes plans.
        inputs: operand names of the graph's inputs.
        outputs: names of the operands that leave the graph.
        options: options common to all runs.
        content: gives the digest of all that the graph is made of.
    """
    layers = NumpyExecutor(plan, outputs, options.max_run_bytes)
    if backend is Backend.NUMPY:
        return layers
    from engine.compiler.emit.code_store import code_store  # noqa: PLC0415  # llvmlite takes its time to load
    from engine.compiler.program.native import NativeExecutor  # noqa: PLC0415
    from engine.compiler.program.programs import Programs  # noqa: PLC0415
    from engine.compiler.program.verification_cache import VerificationCache  # noqa: PLC0415

    programs = Programs(
        inputs,
        outputs,
        options.threads,
        options.programs_kept,
        verifies=options.verify is not Verify.OFF,
        verification_cache=VerificationCache(code_store(), content)
        if options.verify is Verify.LOAD
        else None,
        max_seconds=options.max_build_seconds,
        precision=options.precision,
        tolerance=options.tolerance,
        axes=options.dynamic_axes,
    )
    return NativeExecutor(programs, layers, plan, outputs, options.max_run_bytes)


def entry_cache(backend: Backend) -> EntryCache | None:
    """Return the cache of mapped weights of a backend, NUMPY or NATIVE; None for no cache."""
    if backend is Backend.NUMPY:
        return None
    from engine.compiler.emit.weight_files import weight_files  # noqa: PLC0415  # llvmlite takes its time to load

    cache = weight_files()
    return cache if cache.is_on else None


def weight_quantizer(backend: Backend) -> Callable[[Array], QuantizedWeights]:
    """Return the function that quantizes float32 weights; for NATIVE, its results are mapped and cached on disk."""
    if backend is Backend.NUMPY:
        return quantize_weights
    from engine.compiler.emit.weight_files import weight_files  # noqa: PLC0415  # as above

    return weight_files().quantize


def weight_rounder(backend: Backend) -> Callable[[Array], Array]:
    """Return the function that rounds weights to four bits; for NATIVE, its results are mapped and cached on disk."""
    if backend is Backend.NUMPY:
        return rounded_to_int4
    from engine.compiler.emit.weight_files import weight_files  # noqa: PLC0415  # as above

    return weight_files().rounded_to_int4


def multiplies_bytes(backend: Backend) -> bool:
    """Return whether a backend, NUMPY or NATIVE, has the processor's instructions for products of bytes."""
    if backend is Backend.NUMPY:
        return False
    from engine.compiler.emit.target import host_target  # noqa: PLC0415  # llvmlite takes its time to load

    return host_target().multiplies_bytes


def describe_processor(backend: Backend, threads: int) -> str:
    """Return what times of a backend, NUMPY or NATIVE, are times of: a processor, and how many threads of it.

    Args:
        backend: the backend.
        threads: threads of a run.
    """
    processor = "reference implementation"
    if backend is not Backend.NUMPY:
        from engine.compiler.emit.target import host_target  # noqa: PLC0415  # llvmlite takes its time to load

        processor = f"{host_target().cpu} {host_target().name}"
    return f"{processor}, {threads} {'thread' if threads == 1 else 'threads'}"


def code_folder_in_use() -> Path | None:
    """Return the cache folder of compiled code.

    None without a compiler, with caching disabled by `KUIPER_CACHE`, and after a failed write.
    """
    if _obstacle() is not None:
        return None
    from engine.compiler.emit.code_store import code_store  # noqa: PLC0415  # only now is llvmlite known to be there

    return code_store().folder


def finish_compiling() -> None:
    """Wait until programs that are compiled in the background are done: before a process ends that compiles ahead."""
    from engine.compiler.program.background import finish_background  # noqa: PLC0415  # llvmlite takes its time to load

    finish_background()


def _obstacle() -> str | None:
    """Return why kernels cannot be compiled; None if they can."""
    if importlib.util.find_spec("llvmlite") is None:
        return "llvmlite is not installed"
    from engine.compiler.emit.target import host_target  # noqa: PLC0415  # only now is llvmlite known to be there

    try:
        host_target()
    except (OSError, ValueError) as error:
        return str(error)
    _let_go_of_llvm()
    return None


@lru_cache(maxsize=1)
def _let_go_of_llvm() -> None:
    """Release the memory of loading LLVM, once: half of it is never used again if code is cached."""
    from engine.compiler.memory.release import release_compiler_memory  # noqa: PLC0415  # as above

    release_compiler_memory()
