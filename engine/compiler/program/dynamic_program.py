"""A dynamic-shape program: compiled kernels with runtime dimensions, of which programs for single sizes are assembled.

Lowering, selection and memory layout run again for each size, as for any program. They take a fraction of the time that
LLVM does, and no kernel is compiled: a size that needs another kernel is not supported.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from engine.compiler.emit.jit import Code, Kernel, general
from engine.compiler.memory.view import Buffer
from engine.compiler.memory.weights import PackedWeights
from engine.compiler.passes.storage import LARGE_CONSTANT
from engine.compiler.program.assembler import Assembler, assembling
from engine.compiler.program.program import Program
from engine.compiler.selection import Selector
from engine.dtypes import Array
from engine.model.build_clock import UNLIMITED, BuildClock
from engine.run.plan import Plan

Load = Callable[[], Array]
"""Returns the elements of a constant."""


class MisfitError(Exception):
    """A size needs a kernel that was not compiled."""


@dataclass(frozen=True, slots=True, eq=False)
class DynamicProgram:
    """A dynamic-shape program, which instantiates a program for each size.

    Attributes:
        leaving: names of the operands that leave the graph.
        selector: options of kernel selection.
        codes: kernels with runtime dimensions, and their code.
        constants: loaders of the constants of one program by the digest of their content, shared by all programs.
    """

    leaving: tuple[str, ...]
    selector: Selector
    codes: Mapping[Kernel, Code]
    constants: Mapping[bytes, Load]

    def at(self, plan: Plan) -> Program:
        """Return the program for the inputs of a plan.

        Raises:
            MisfitError: there is none; such inputs need a program of their own.
            RegionError, CompileError: as of any program.
        """
        with np.errstate(all="ignore"), _assembling(plan, self.leaving, self.selector) as assembler:
            kernels = _kernels(assembler)
            missing = set(kernels) - self.codes.keys()
            if missing:
                raise MisfitError(f"other kernels are needed: {', '.join(map(str, missing))}")
            for digest, buffer in _constants(assembler):
                buffer.load = self.constants.get(digest, buffer.load)
            return assembler.finish(lambda: [self.codes[kernel] for kernel in kernels])


def dynamic_program(
    plans: Iterable[Plan], leaving: Sequence[str], selector: Selector, clock: BuildClock
) -> DynamicProgram:
    """Return the program for inputs of all sizes, its kernels compiled.

    Args:
        plans: plans for different sizes, of which the first two are used.
        leaving: names of the operands that leave the graph.
        selector: options of kernel selection.
        clock: checked before each operator and each kernel.

    Raises:
        MisfitError: there is none for this model.
        RegionError, CompileError, BuildTimeoutError: as of any program.
    """
    kernels: set[Kernel] | None = None
    for plan in plans:
        with _assembling(plan, leaving, selector, clock) as assembler:
            needed = _kernels(assembler)
            if not needed:
                raise MisfitError("no kernel can do any of it")
            if kernels is None:
                kernels = set(needed)
                continue
            if set(needed) != kernels:
                other = ", ".join(sorted(map(str, kernels.symmetric_difference(needed))))
                raise MisfitError(f"two sizes need different kernels: {other}")
            codes = dict(zip(needed, assembler.codes(), strict=True))
            constants = {digest: buffer.load for digest, buffer in _constants(assembler) if buffer.load}
            return DynamicProgram(tuple(leaving), selector, codes, constants)
    raise MisfitError("the model supports fewer than two of the sizes tried")


def _assembling(
    plan: Plan, leaving: Sequence[str], selector: Selector, clock: BuildClock = UNLIMITED
) -> AbstractContextManager[Assembler]:
    return assembling(plan, [plan.slots[name] for name in leaving], selector, clock)


def _kernels(assembler: Assembler) -> list[Kernel]:
    """Return the kernel whose code each call runs."""
    return [general(call.kernel) for call, _ in assembler.calls]


def _constants(assembler: Assembler) -> Iterator[tuple[bytes, Buffer]]:
    """Yield the constants of a program, but packed weights, which programs share in any case, and large ones.

    Those stay where the file has them.
    """
    buffers = dict.fromkeys(view.buffer for call, _ in assembler.calls for view in call.arguments)
    for buffer in buffers:
        if buffer.load is not None and not isinstance(getattr(buffer.load, "__self__", None), PackedWeights):
            array = buffer.load()
            if array.nbytes < LARGE_CONSTANT:
                yield sha256(array.tobytes()).digest(), buffer
