"""Changes to a sound model, each of a kind that a faulty exporter or a hostile author could make.

All choices come from one `random.Random`: the same seed gives the same model.
"""

import math
import re
from collections.abc import Callable, Sequence
from copy import copy
from functools import lru_cache
from random import Random

import numpy as np

from engine import pnnx, registry
from engine.dtypes import PNNX_STORAGE, Array
from engine.expression import FUNCTIONS
from engine.pnnx.model import ParameterValue
from engine.pnnx.tensor_type import ELEMENT_SIZES
from tests.fuzz.seeds import Seed, seeds

INTS = (0, 1, 2, 3, 4, 5, 7, 16, 100, -1, -2, -3, -7, 65536, 2**31, 2**62, 2**63 - 1, -(2**63))
SMALL = (0, 1, 2, 3, 4, 5, -1, -2)
FLOATS = (0.0, 1.0, -1.0, 0.5, 1e-30, 1e38, 1e308, math.inf, -math.inf, math.nan)
# fmt: off
WORDS = (
    "zeros", "border", "reflection", "bilinear", "bicubic", "nearest", "linear", "area", "constant",
    "reflect", "replicate", "circular", "same", "valid", "mean", "sum", "max", "min", "prod", "none",
    "tanh", "relu", "gelu", "floor", "trunc", "torch.float", "torch.long", "torch.bool", "torch.half",
    "torch.complex64", "ij", "xy", "ij,jk->ik", "...i->...", "ii->i", "amax", "amin", "x", "[None,[0,1]]",
    "[0]", "(int(8),int(8))", "fro", "nuc", "inf", "-inf",
)
# fmt: on)
MAX_ATTRIBUTE_BYTES = 1 << 16

Change = Callable[[Random, pnnx.Graph], None]


def mutate(rng: Random) -> tuple[str, pnnx.Graph, list[Array]]:
    """Return the id of a sound model, the model with a few changes, and inputs for it, often changed as well."""
    seed = rng.choice(seeds())
    graph = copied(seed.graph)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        rng.choice(CHANGES)(rng, graph)
    if (
        rng.random() < 0.4
    ):  # what a file declares shows many contradictions: without, more of them reach the layers
        graph.operands = dict.fromkeys(graph.operands)
    inputs = [change_input(rng, array) if rng.random() < 0.12 else array for array in seed.inputs]
    return seed.id, graph, inputs


def copied(graph: pnnx.Graph) -> pnnx.Graph:
    """Return a copy whose operators can be changed; attributes are immutable and shared."""
    operators = []
    for operator in graph.operators:
        twin = copy(operator)
        twin.inputs, twin.outputs = list(operator.inputs), list(operator.outputs)
        twin.params, twin.attrs = dict(operator.params), dict(operator.attrs)
        twin.input_names, twin.spellings = dict(operator.input_names), {}
        operators.append(twin)
    return pnnx.Graph(operators, dict(graph.operands))


def change_input(rng: Random, array: Array) -> Array:
    """Return an array of another shape, dtype or content."""
    kind = rng.randrange(4)
    if kind == 0 and array.ndim:
        shape = list(array.shape)
        shape[rng.randrange(len(shape))] = rng.choice((0, 1, 2, 3, 5, 8, 9))
        return np.resize(array, shape)
    if kind == 1:
        dtype = PNNX_STORAGE[rng.choice([name for name in PNNX_STORAGE if name not in ("bf16", "c32")])]
        with np.errstate(all="ignore"):
            return array.real.astype(dtype)
    if kind == 2:
        return array[None] if rng.random() < 0.5 or not array.ndim else array[0] if len(array) else array
    filled = np.zeros_like(array)
    if array.dtype.kind in "fc":
        with np.errstate(all="ignore"):
            filled[...] = rng.choice((0, 1, -1, 127, np.nan, np.inf, 1e30))
    elif array.dtype.kind == "i":
        filled[...] = rng.choice((0, 1, -1, 99, np.iinfo(array.dtype).min, np.iinfo(array.dtype).max))
    return filled


def _operator(rng: Random, graph: pnnx.Graph) -> pnnx.Operator:
    inner = [operator for operator in graph.operators if not operator.type.startswith("pnnx.")]
    return rng.choice(inner if inner and rng.random() < 0.8 else graph.operators)


def _value(rng: Random, old: ParameterValue) -> ParameterValue:
    if isinstance(old, tuple) and rng.random() < 0.7:
        return _change_tuple(rng, old)
    kind = rng.randrange(8)
    if kind < 2:
        return rng.choice(INTS)
    if kind == 2:
        return rng.choice(FLOATS)
    if kind == 3:
        return rng.choice(WORDS)
    if kind == 4:
        return rng.choice((None, True, False, 1 + 2j))
    if kind == 5:
        return tuple(rng.choice(INTS) for _ in range(rng.choice((1, 1, 2, 2, 3, 4, 5, 9))))
    if kind == 6:
        return tuple(rng.choice(FLOATS) for _ in range(rng.choice((1, 2, 3))))
    return tuple(rng.choice(SMALL) for _ in range(rng.choice((1, 2, 2, 3, 4, 6))))


def _change_tuple(rng: Random, old: tuple[ParameterValue, ...]) -> ParameterValue:
    items = list(old)
    kind = rng.randrange(3)
    if kind == 0 and len(items) > 1:
        del items[rng.randrange(len(items))]
    elif kind == 1:
        items.append(rng.choice(items))
    else:
        items[rng.randrange(len(items))] = rng.choice(FLOATS if isinstance(items[0], float) else INTS)
    return tuple(items)  # type: ignore[return-value]  # members stay of one kind


def change_parameter(rng: Random, graph: pnnx.Graph) -> None:
    """Give a parameter another value."""
    operator = _operator(rng, graph)
    keys = [key for key in operator.params if key != "expr"]
    if keys:
        key = rng.choice(keys)
        old = operator.params[key]
        if isinstance(old, bool) or (isinstance(old, int) and rng.random() < 0.5):
            operator.params[key] = (not old) if isinstance(old, bool) else rng.choice(SMALL)
        else:
            operator.params[key] = _value(rng, old)


def remove_parameter(rng: Random, graph: pnnx.Graph) -> None:
    """Take a parameter away."""
    operator = _operator(rng, graph)
    if operator.params:
        del operator.params[rng.choice(list(operator.params))]


def add_parameter(rng: Random, graph: pnnx.Graph) -> None:
    """Add an argument that the layer knows, or give as a parameter what was an operand."""
    operator = _operator(rng, graph)
    known = registry.find(operator.type)
    if known is not None and known.arguments:
        operator.params[rng.choice(known.arguments).name] = _value(rng, None)


def change_attribute(rng: Random, graph: pnnx.Graph) -> None:
    """Give an attribute another shape or type, or other numbers."""
    holders = [operator for operator in graph.operators if operator.attrs]
    if not holders:
        return
    operator = rng.choice(holders)
    key = rng.choice(list(operator.attrs))
    old = operator.attrs[key]
    shape, dtype = list(old.shape), old.dtype
    kind = rng.randrange(6)
    if kind == 0 and shape:
        shape[rng.randrange(len(shape))] = rng.choice((0, 1, 2, 3, 4, 7, 16))
    elif kind == 1 and shape:
        del shape[rng.randrange(len(shape))]
    elif kind == 2:
        shape.insert(rng.randrange(len(shape) + 1), rng.choice((0, 1, 1, 2, 3)))
    elif kind == 3:
        dtype = rng.choice(list(ELEMENT_SIZES))
    elif kind == 4:
        rng.shuffle(shape)
    size = math.prod(shape) * ELEMENT_SIZES[dtype]
    if size <= MAX_ATTRIBUTE_BYTES:
        fill = rng.choice((bytes(old.data), b"\0", b"\1", b"\xff", b"\x7f\x7f")) or b"\0"
        content = (fill * (size // len(fill) + 1))[:size]
        operator.attrs[key] = pnnx.Attribute(tuple(shape), dtype, content)


def remove_attribute(rng: Random, graph: pnnx.Graph) -> None:
    """Take an attribute away, or give it another name."""
    operator = _operator(rng, graph)
    if operator.attrs:
        attribute = operator.attrs.pop(rng.choice(list(operator.attrs)))
        known = registry.find(operator.type)
        if known is not None and known.arguments and rng.random() < 0.5:
            operator.attrs[rng.choice(known.arguments).name] = attribute


def change_inputs(rng: Random, graph: pnnx.Graph) -> None:
    """Take an operand away from an operator, give it one more, or another."""
    operator = _operator(rng, graph)
    kind = rng.randrange(4)
    before = {
        name for earlier in graph.operators[: graph.operators.index(operator)] for name in earlier.outputs
    }
    names = sorted(before) or ["0"]
    if kind == 0 and operator.inputs:
        del operator.inputs[rng.randrange(len(operator.inputs))]
    elif kind == 1:
        operator.inputs.insert(rng.randrange(len(operator.inputs) + 1), rng.choice(names))
    elif kind == 2 and operator.inputs:
        operator.inputs[rng.randrange(len(operator.inputs))] = rng.choice(names)
    else:
        rng.shuffle(operator.inputs)
    operator.input_names = {k: v for k, v in operator.input_names.items() if v in operator.inputs}


def name_input(rng: Random, graph: pnnx.Graph) -> None:
    """Bind an operand to another argument, or to none."""
    operator = _operator(rng, graph)
    known = registry.find(operator.type)
    if operator.inputs and known is not None and known.arguments and rng.random() < 0.7:
        operator.input_names[rng.choice(known.arguments).name] = rng.choice(operator.inputs)
    elif operator.input_names:
        del operator.input_names[rng.choice(list(operator.input_names))]


def change_outputs(rng: Random, graph: pnnx.Graph) -> None:
    """Let an operator give one output more or less, or send another one out of the graph."""
    operator = _operator(rng, graph)
    if rng.random() < 0.6:
        name = f"more{rng.randrange(10**6)}"
        operator.outputs.insert(rng.randrange(len(operator.outputs) + 1), name)
        graph.operands[name] = rng.choice(list(graph.operands.values()) or [None])
        if rng.random() < 0.5:
            graph.operators[-1].inputs.append(name)
    elif len(operator.outputs) > 1:
        name = operator.outputs.pop(rng.randrange(len(operator.outputs)))
        graph.operands.pop(name, None)
        for other in graph.operators:
            other.inputs = [operand for operand in other.inputs if operand != name]


def change_type(rng: Random, graph: pnnx.Graph) -> None:
    """Make an operator one of another type, mostly one of the same family."""
    operator = _operator(rng, graph)
    family = operator.type.split(".")[0]
    types = _types(family if rng.random() < 0.5 else "")
    if types:
        operator.type = rng.choice(types)


@lru_cache(maxsize=64)
def _types(prefix: str) -> tuple[str, ...]:
    return tuple(sorted(known.type for known in registry if known.type.startswith(prefix)))


def change_declared(rng: Random, graph: pnnx.Graph) -> None:
    """Declare another shape or type of an operand, or none."""
    if not graph.operands:
        return
    name = rng.choice(list(graph.operands))
    old = graph.operands[name]
    if old is None or rng.random() < 0.2:
        graph.operands[name] = None if old is not None else pnnx.TensorType((1, 4), "f32")
        return
    shape, dtype = list(old.shape), old.dtype
    kind = rng.randrange(4)
    if kind == 0 and shape:
        shape[rng.randrange(len(shape))] = rng.choice((None, 0, 1, 2, 3, 7, 2**40))
    elif kind == 1 and shape:
        del shape[rng.randrange(len(shape))]
    elif kind == 2:
        shape.insert(0, rng.choice((None, 1, 2)))
    else:
        dtype = rng.choice(list(ELEMENT_SIZES))
    graph.operands[name] = pnnx.TensorType(tuple(shape), dtype)


def splice_operator(rng: Random, graph: pnnx.Graph) -> None:
    """Put an operator of another sound model somewhere in between."""
    donor: Seed = rng.choice(seeds())
    inner = [operator for operator in donor.graph.operators if not operator.type.startswith("pnnx.")]
    inner = [operator for operator in inner if len(operator.outputs) == 1]
    if not inner or len(graph.operators) < 2:
        return
    (source,) = [rng.choice(inner)]
    names = [name for operator in graph.operators for name in operator.outputs]
    if not names:
        return
    target = rng.choice(names)
    label = f"spliced{rng.randrange(10**6)}"
    twin = pnnx.Operator(source.type, label, [target] * len(source.inputs), [f"{label}.out"])
    twin.params, twin.attrs = dict(source.params), dict(source.attrs)
    twin.inputs = [rng.choice(names) if rng.random() < 0.1 else target for _ in source.inputs]
    place = next(i for i, operator in enumerate(graph.operators) if target in operator.outputs) + 1
    for other in graph.operators[place:]:
        if rng.random() < 0.8:
            other.inputs = [twin.outputs[0] if name == target else name for name in other.inputs]
            other.input_names = {k: v for k, v in other.input_names.items() if v in other.inputs}
    graph.operators.insert(place, twin)
    graph.operands[twin.outputs[0]] = None


def change_expression(rng: Random, graph: pnnx.Graph) -> None:
    """Change the text of an expression, or make an operator one."""
    holders = [operator for operator in graph.operators if "expr" in operator.params]
    if not holders:
        operator = _operator(rng, graph)
        if operator.type.startswith("pnnx."):
            return
        operator.type, operator.attrs = "pnnx.Expression", {}
        operator.params = {"expr": _expression(rng, len(operator.inputs), 0)}
        return
    operator = rng.choice(holders)
    text = str(operator.params["expr"])
    kind = rng.randrange(3)
    if kind == 0:
        text = _expression(rng, len(operator.inputs), 0)
    elif kind == 1:
        tokens = re.findall(r"[A-Za-z_]\w*|@\d+|[^A-Za-z_@]", text)
        tokens[rng.randrange(len(tokens))] = rng.choice(
            ("@0", "@1", "@9", "1", "-2.5", "(", ")", ",", "[", "]", "None", *FUNCTIONS)
        )
        text = "".join(tokens)
    else:
        text = f"{rng.choice(list(FUNCTIONS))}({text})"
    if text and not re.search(r"\s", text):
        operator.params["expr"] = text


def _expression(rng: Random, count: int, depth: int) -> str:
    if depth > 3 or rng.random() < 0.3:
        leaf = rng.randrange(6)
        if leaf < 4:
            return f"@{rng.randrange(count + 1) if rng.random() < 0.1 else rng.randrange(max(count, 1))}"
        return str(rng.choice(INTS) if leaf == 4 else rng.choice((*FLOATS, "None", "True", "1+2j")))
    if rng.random() < 0.1:
        return f"[{','.join(_expression(rng, count, depth + 1) for _ in range(rng.randrange(4)))}]"
    name, function = rng.choice(list(FUNCTIONS.items()))
    many = rng.randint(function.least, min(function.most, function.least + 2))
    return f"{name}({','.join(_expression(rng, count, depth + 1) for _ in range(many))})"


CHANGES: Sequence[Change] = (
    change_parameter,
    change_parameter,
    change_parameter,
    remove_parameter,
    add_parameter,
    change_attribute,
    change_attribute,
    remove_attribute,
    change_inputs,
    name_input,
    change_outputs,
    change_type,
    change_declared,
    splice_operator,
    splice_operator,
    change_expression,
)
