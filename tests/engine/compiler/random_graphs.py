"""Random graphs of operators that the compiler takes, mixed with some that it leaves to numpy."""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from engine.dtypes import Array

Shape = tuple[int, ...]
_FUNCTIONS = ("F.relu", "F.sigmoid", "F.tanh", "F.silu", "F.hardswish", "torch.cumsum dim=0", "torch.clone")
_PAIRS = ("add(@0,@1)", "sub(@1,@0)", "mul(@0,tanh(@1))", "max(@0,mul(@1,2.5))", "div(@0,add(abs(@1),1))")


@dataclass
class RandomGraph:
    """A graph that is being drawn.

    Attributes:
        lines: its operators, without outputs.
        attributes: its weights.
        tensors: operand -> shape.
        inputs: shapes of the inputs.
    """

    lines: list[str] = field(default_factory=list)
    attributes: dict[str, Array] = field(default_factory=dict)
    tensors: dict[str, Shape] = field(default_factory=dict)
    inputs: list[Shape] = field(default_factory=list)

    def add(self, kind: str, inputs: list[str], *shapes: Shape, **parameters: object) -> list[str]:
        """Add an operator; returns the names of its outputs."""
        outputs = [f"t{len(self.tensors) + place}" for place in range(len(shapes))]
        self.tensors.update(zip(outputs, shapes, strict=True))
        kind, *given = kind.split()
        words = [*given, *(f"{name}={value}" for name, value in parameters.items())]
        head = f"{kind} op{len(self.lines)} {len(inputs)} {len(outputs)}"
        self.lines.append(" ".join([head, *inputs, *outputs, *words]))
        return outputs

    def weight(self, name: str, shape: Shape) -> str:
        """Give the operator that comes next a weight; returns the word that says so."""
        random = np.random.default_rng(len(self.lines))
        key = f"op{len(self.lines)}.{name}"
        self.attributes[key] = random.standard_normal(shape).astype(np.float32) / max(1, shape[-1])
        return f"@{name}={_spell(shape)}f32"


@st.composite
def graphs(draw: st.DrawFn) -> tuple[RandomGraph, list[str]]:
    """Draw a graph of up to eight operators and the operands that leave it."""
    graph = RandomGraph()
    for _ in range(draw(st.integers(1, 2))):
        shape = (
            draw(st.integers(1, 2)),
            draw(st.sampled_from([1, 3, 16, 18])),
            4,
            draw(st.sampled_from([1, 5])),
        )
        graph.inputs.append(shape)
        graph.add("pnnx.Input", [], shape)
    for _ in range(draw(st.integers(1, 8))):
        _grow(draw, graph)
    names = list(graph.tensors)
    return graph, draw(st.lists(st.sampled_from(names), min_size=1, max_size=3)) + names[-1:]


def _grow(draw: st.DrawFn, graph: RandomGraph) -> None:
    """Add an operator on operands that are there."""
    x = draw(st.sampled_from(list(graph.tensors)[-4:]))
    choices = [
        _function,
        _pair,
        _scalar_product,
        _reshape,
        _permute,
        _slice,
        _chunk,
        _concatenate,
        _normalize,
    ]
    if len(graph.tensors[x]) == 4:
        choices += [_convolve, _convolve, _pool]
    if len(graph.tensors[x]) >= 2:
        choices.append(_project)
    draw(st.sampled_from(choices))(draw, graph, x)


def _function(draw: st.DrawFn, graph: RandomGraph, x: str) -> None:
    graph.add(draw(st.sampled_from(_FUNCTIONS)), [x], graph.tensors[x], **{"$input": x})


def _pair(draw: st.DrawFn, graph: RandomGraph, x: str) -> None:
    shape = graph.tensors[x]
    same = [name for name, other in graph.tensors.items() if other == shape]
    graph.add("pnnx.Expression", [x, draw(st.sampled_from(same))], shape, expr=draw(st.sampled_from(_PAIRS)))


def _scalar_product(draw: st.DrawFn, graph: RandomGraph, x: str) -> None:
    """Multiply by the mean over the last axes: a tensor per channel, image or both."""
    shape = graph.tensors[x]
    axes = draw(st.sampled_from([(-1,), (-1, -2), (0,), tuple(range(len(shape)))]))
    axes = axes if len(axes) <= len(shape) else (0,)
    gone = {axis % len(shape) for axis in axes}
    small = tuple(1 if axis in gone else extent for axis, extent in enumerate(shape))
    (mean,) = graph.add("torch.mean", [x], small, dim=_spell(axes), keepdim=True, **{"$input": x})
    graph.add("pnnx.Expression", [x, mean], shape, expr="mul(@0,@1)")


def _reshape(draw: st.DrawFn, graph: RandomGraph, x: str) -> None:
    shape = graph.tensors[x]
    wanted = draw(st.sampled_from([(-1,), (shape[0], -1), (*shape[:-1], 1, shape[-1])]))
    size = int(np.prod(shape))
    full = tuple(size // -int(np.prod(wanted)) if extent == -1 else extent for extent in wanted)
    if len(full) <= 4:
        graph.add("Tensor.reshape", [x], full, shape=_spell(wanted), **{"$input": x})


def _permute(draw: st.DrawFn, graph: RandomGraph, x: str) -> None:
    shape = graph.tensors[x]
    axes = tuple(draw(st.permutations(range(len(shape)))))
    graph.add("Tensor.permute", [x], tuple(shape[a] for a in axes), dims=_spell(axes), **{"$input": x})


def _slice(draw: st.DrawFn, graph: RandomGraph, x: str) -> None:
    shape = graph.tensors[x]
    axis = draw(st.integers(0, len(shape) - 1))
    start, step = draw(st.integers(0, shape[axis] - 1)), draw(st.integers(1, 2))
    count = -(-(shape[axis] - start) // step)
    small = (*shape[:axis], count, *shape[axis + 1 :])
    graph.add("Tensor.slice", [x], small, dim=axis, start=start, end=shape[axis], step=step, **{"$input": x})


def _chunk(draw: st.DrawFn, graph: RandomGraph, x: str) -> None:
    shape = graph.tensors[x]
    even = [axis for axis, extent in enumerate(shape) if extent % 2 == 0]
    if even:
        axis = draw(st.sampled_from(even))
        half = (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])
        graph.add("torch.chunk", [x], half, half, chunks=2, dim=axis, **{"$input": x})


def _concatenate(draw: st.DrawFn, graph: RandomGraph, x: str) -> None:
    shape = graph.tensors[x]
    axis = draw(st.integers(0, len(shape) - 1))
    fits = [
        name
        for name, other in graph.tensors.items()
        if len(other) == len(shape)
        and (*other[:axis], *other[axis + 1 :]) == (*shape[:axis], *shape[axis + 1 :])
    ]
    parts = [x, *draw(st.lists(st.sampled_from(fits), min_size=1, max_size=2))]
    extent = sum(graph.tensors[name][axis] for name in parts)
    graph.add("torch.cat", parts, (*shape[:axis], extent, *shape[axis + 1 :]), dim=axis)


def _normalize(draw: st.DrawFn, graph: RandomGraph, x: str) -> None:
    shape = graph.tensors[x]
    graph.add("F.softmax", [x], shape, dim=draw(st.integers(-len(shape), len(shape) - 1)), **{"$input": x})


def _convolve(draw: st.DrawFn, graph: RandomGraph, x: str) -> None:
    images, channels, rows, columns = graph.tensors[x]
    filters, size = draw(st.sampled_from([1, 8, 17])), draw(st.sampled_from([1, 3]))
    weight, bias = graph.weight("weight", (filters, channels, size, size)), graph.weight("bias", (filters,))
    given = f"bias=True dilation=(1,1) groups=1 in_channels={channels} kernel_size=({size},{size})"
    given += f" out_channels={filters} padding=({size // 2},{size // 2}) padding_mode=zeros stride=(1,1)"
    graph.add(f"nn.Conv2d {given} {weight} {bias}", [x], (images, filters, rows, columns))


def _pool(draw: st.DrawFn, graph: RandomGraph, x: str) -> None:
    images, channels, rows, columns = graph.tensors[x]
    given = "ceil_mode=False dilation=(1,1) kernel_size=(3,3) padding=(1,1) return_indices=False stride=(2,2)"
    graph.add(f"nn.MaxPool2d {given}", [x], (images, channels, (rows - 1) // 2 + 1, (columns - 1) // 2 + 1))


def _project(draw: st.DrawFn, graph: RandomGraph, x: str) -> None:
    *batch, columns = graph.tensors[x]
    features = draw(st.sampled_from([1, 10, 33]))
    weight, bias = graph.weight("weight", (features, columns)), graph.weight("bias", (features,))
    given = f"nn.Linear bias=True in_features={columns} out_features={features} {weight} {bias}"
    graph.add(given, [x], (*batch, features))


def _spell(numbers: tuple[int, ...]) -> str:
    return f"({','.join(map(str, numbers))})"
