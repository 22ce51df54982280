"""A compiled kernel: the engine runs `signal.LeakyIntegrator`, y[t] = x[t] + decay * y[t - 1], in machine code.

Four parts follow one another, as for each of the engine's own operators: the layer, which numpy runs and which the
kernel is verified against; the node of the compiler's graph that the operator becomes; the kernel; and the rule that
chooses the kernel for a node.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.jit import Kernel
from engine.compiler.graph import Node
from engine.compiler.lowering import LoweringContext, lowers_layer
from engine.compiler.memory.region import Region
from engine.compiler.selection.call import Selector, selects, view_of
from kuiper import Array, TensorSpec, layer

_CHUNK = 8192
"""Elements of a chunk."""


def infer_leaky_integrator(input: TensorSpec) -> TensorSpec:
    """Return the output's shape and dtype: the input's."""
    return input


@layer("signal.LeakyIntegrator", infer=infer_leaky_integrator)
def leaky_integrator(input: Array, decay: float) -> Array:
    """Add up along the last axis, while what was added before decays.

    Args:
        input: (…, time) of float32.
        decay: factor of one step.
    """
    output = np.array(input)
    for step in range(1, output.shape[-1]):
        output[..., step] += np.float32(decay) * output[..., step - 1]
    return output


@dataclass(eq=False, slots=True)
class LeakyIntegrator(Node):
    """A leaky integration along the last axis of its only input."""

    decay: float


@lowers_layer(leaky_integrator)
def lower_leaky_integrator(context: LoweringContext) -> Node | None:
    """Lower the operator, unless its input is not float32 or is the same in every run."""
    if not context.shape("input") or not context.has_operand("input"):
        return None
    return LeakyIntegrator([context.index], [context.tensor("input")], decay=context.value("decay"))


@dataclass(frozen=True, slots=True)
class LeakyIntegratorKernel(Kernel):
    """A leaky integration of one exact shape. Arguments: input, output.

    Attributes:
        shape: extents; the last axis is time.
        x_strides: elements between neighbours along each axis of the input.
        out_strides: the same of the output.
        decay: factor of one step.
    """

    shape: tuple[int, ...]
    x_strides: tuple[int, ...]
    out_strides: tuple[int, ...]
    decay: float

    @property
    def regions(self) -> tuple[Region, ...]:
        """What the kernel touches of its arguments, in their order."""
        return Region(self.shape, self.x_strides), Region(self.shape, self.out_strides, is_written=True)

    @property
    def chunks(self) -> int:
        """Parts that the work is split into: whole lines along the time."""
        return max(1, min(prod(self.shape) // _CHUNK, self._lines))

    @property
    def _lines(self) -> int:
        return prod(self.shape[:-1])

    def emit(self, e: Emitter) -> None:
        """Write the kernel: a loop over the lines of a chunk, and in it one over time that carries the sum."""
        x, out, decay = e.argument(0), e.argument(1), e.scalar(self.decay)
        grain = -(-self._lines // self.chunks)
        with e.chunk_loop(grain, self._lines) as lines:
            place = e.unravel(lines.index, self.shape[:-1])
            source = e.address(x, *map(e.mul, place, self.x_strides[:-1]))
            target = e.address(out, *map(e.mul, place, self.out_strides[:-1]))
            with e.loop(0, self.shape[-1], carry=[e.scalar(0.0)]) as time:
                value = e.load_scalar(source, e.mul(time.index, self.x_strides[-1]))
                total = e.fma(time.carried[0], decay, value)
                e.store_scalar(total, target, e.mul(time.index, self.out_strides[-1]))
                time.following = [total]


@selects(LeakyIntegrator)
def select_leaky_integrator(selector: Selector, node: LeakyIntegrator) -> None:
    """Make the one call of the kernel."""
    x, out = view_of(node.inputs[0]), view_of(node.output)
    selector.call(LeakyIntegratorKernel(x.shape, x.strides, out.strides, node.decay), x, out)
