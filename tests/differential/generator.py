"""Random graphs. A seed and an index name one, as long as the families and the tables they draw from stay the same;
what is to be kept for ever is kept as text, among the named cases."""

from dataclasses import replace
from math import prod
from random import Random

from tests.differential.case import GraphCase, Shape
from tests.differential.drawing import MAX_ELEMENTS, Drawing
from tests.differential.families import FAMILIES

MAX_OPERATORS = 14
_OTHER_RUNS = 2


def random_case(seed: int, index: int) -> GraphCase:
    """Draw a graph of up to some fourteen operators, the operands that leave it, and the shapes that it is run on."""
    d = Drawing(Random(f"{seed}/{index}"))
    dynamic_axes: dict[str, tuple[int, ...]] = {}
    for _ in range(1 if d.chance(0.75) else 2):
        shape = _input_shape(d)
        axes = (0, 2, 3) if len(shape) == 4 else (0, 1) if len(shape) == 3 else (0,)
        dynamic_axes[d.input(shape, axes if d.chance(0.7) else ())] = axes
    wanted = d.number(1, MAX_OPERATORS) if d.chance(0.8) else 1
    for _ in range(3 * wanted):
        if len(d.lines) >= wanted + len(dynamic_axes):
            break
        _grow(d)
    case = d.case(f"{seed}/{index}", _leaving(d), seed * 1_000_003 + index)
    return replace(case, runs=(*case.runs, *_other_runs(d, dynamic_axes)))


def _input_shape(d: Drawing) -> Shape:
    kind = d.pick(("image", "image", "image", "large", "heavy", "heavy", "rows", "rows", "matrix", "odd"))
    batch = d.pick((1, 1, 1, 2, 3, 5))
    if kind == "image":
        channels = d.pick((1, 2, 3, 4, 8, 15, 16, 17, 24, 32, 48))
        return (batch, channels, d.number(1, 40), d.number(1, 40))
    if kind == "large":
        channels = d.pick((3, 8, 16, 24, 32, 64))
        pixels = d.number(132_000, MAX_ELEMENTS) // channels
        rows = d.number(8, 200)
        return (1, channels, rows, max(1, pixels // rows))
    if kind == "heavy":
        channels = d.pick((64, 96, 128, 160, 256, 512))
        return (batch, channels, d.number(1, 18), d.number(1, 18))
    if kind == "rows":
        return (batch, d.pick((1, 2, 7, 16, 33, 50)), d.pick((1, 3, 16, 24, 64, 65, 128)))
    if kind == "matrix":
        return (d.pick((1, 2, 5, 17)), d.pick((1, 4, 16, 31, 200)))
    return d.pick(((d.number(1, 40),), (1, 2, 3, 4, 5), (2, 3, 1, 7, 8), (2, 1, 16), (1, 1, 1, 1)))


def _grow(d: Drawing) -> None:
    """Add operators that read an operand, most often one of the last."""
    names = d.floats()
    x = d.pick(names[-3:]) if d.chance(0.8) else d.pick(names)
    fitting = [each for each in FAMILIES if d.rank(x) in each.ranks]
    place = d.random.random() * sum(each.weight for each in fitting)
    for each in fitting:
        place -= each.weight
        if place < 0:
            each.grow(d, x)
            return


def _leaving(d: Drawing) -> list[str]:
    """Choose the operands that leave: those that nobody reads, mostly, and sometimes others, inputs among them."""
    read = {name for line in d.lines for name in line.inputs}
    ends = [name for name in d.specs if name not in read]
    chosen = [name for name in ends if d.chance(0.8)] or ends[-1:] or list(d.specs)[-1:]
    if d.chance(0.25):
        chosen.append(d.pick(list(d.specs)))
    return chosen


def _other_runs(d: Drawing, dynamic_axes: dict[str, tuple[int, ...]]) -> list[tuple[Shape, ...]]:
    """Draw other batches and sizes: the graph may take them or not, PyTorch and both backends alike."""
    runs = []
    for _ in range(_OTHER_RUNS):
        batch, change = d.pick((1, 2, 3, 4, 8)), d.pick((0, 0, -1, 1, 3, 16))
        shapes = []
        for name, axes in dynamic_axes.items():
            shape = list(d.shape(name))
            shape[0] = batch if 0 in axes and len(shape) > 1 else shape[0]
            for axis in axes[1:]:
                shape[axis] = max(1, shape[axis] + change)
            shapes.append(tuple(shape))
        if all(prod(shape) <= 2 * MAX_ELEMENTS for shape in shapes):
            runs.append(tuple(shapes))
    return runs
