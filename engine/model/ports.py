"""Inputs and outputs of a graph, and the check of what a caller passes for them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine import pnnx
from engine.dtypes import PNNX_COMPUTE, Array, pnnx_name
from engine.errors import ExpressionError, InputError, describe_problem
from engine.expression import ExpressionNode, ListNode, OperandNode, parse
from engine.model.operator import INPUT, OUTPUT, RuntimeOperand, RuntimeOperator
from engine.spec import TensorSpec


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a graph.

    Attributes:
        operator: name of the `pnnx.Input` or `pnnx.Output` operator.
        operand: name of the operand that carries the value; unique among the inputs and among the outputs.
        shape: shape that the file declares, None for a dynamic dimension; None as a whole if undeclared.
        dtype: PNNX dtype name, None where the file declares none.
    """

    operator: str
    operand: str
    shape: tuple[int | None, ...] | None
    dtype: str | None

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.operand}: any"
        dims = ",".join("?" if dim is None else str(dim) for dim in self.shape)
        return f"{self.operand}: ({dims}){self.dtype or ''}"


Inputs = npt.ArrayLike | Sequence[npt.ArrayLike] | Mapping[str, npt.ArrayLike]
"""Arrays in the order of the graph's inputs, or by operator or operand name; of a graph with one input, the array."""


def input_ports(operators: Sequence[RuntimeOperator]) -> tuple[Port, ...]:
    """Return the graph's inputs in file order."""
    return tuple(
        _port(operator, operand.name, operand.type)
        for operator in operators
        if operator.type == INPUT
        for operand in operator.outputs
    )


def output_ports(operators: Sequence[RuntimeOperator]) -> tuple[Port, ...]:
    """Return the graph's outputs in file order, tuples flattened.

    An operand that leaves the graph twice is named `7` the first time and `7.1` the second.
    """
    ports = []
    seen: dict[str, int] = {}
    for operator in operators:
        if operator.type != OUTPUT:
            continue
        for name, declared in (leaf for operand in operator.inputs for leaf in _leaves(operand)):
            repeats = seen.get(name, 0)
            seen[name] = repeats + 1
            ports.append(_port(operator, f"{name}.{repeats}" if repeats else name, declared))
    return tuple(ports)


def check_inputs(ports: Sequence[Port], inputs: Inputs) -> dict[str, Array]:
    """Match what a caller passed to a graph's inputs.

    Dimensions may differ from those in the file: the layers check whether other sizes run.

    An array, or what numpy can view as one (as a PyTorch tensor on the CPU), has a dtype, which has to be the
    input's: nothing is rounded silently. Python's numbers, in lists, have none: they become what the input takes.

    Returns:
        Operand name -> array.

    Raises:
        InputError: wrong count, unknown name, wrong rank or dtype; names the input and what was expected.
    """
    plain = _plain(ports, inputs)
    if plain is not None:
        return plain
    if isinstance(inputs, Mapping):
        given = _by_name(ports, inputs)
    elif hasattr(inputs, "__array__"):
        given = _by_order(ports, [inputs]) if len(ports) == 1 else _not_one(ports, inputs)
    elif isinstance(inputs, Sequence) and not isinstance(inputs, str | bytes):
        given = _by_order(ports, inputs)
    else:
        raise InputError(
            describe_problem("inputs", f"got a {type(inputs).__name__}", "a list of arrays, or a dict")
        )
    arrays = {port.operand: _as_array(port, given[port.operand]) for port in ports}
    for port, array in zip(ports, arrays.values(), strict=True):
        _check(port, TensorSpec(array.shape, array.dtype), is_array=True)
    return arrays


def check_specs(ports: Sequence[Port], specs: Sequence[TensorSpec]) -> None:
    """Check shapes and dtypes, in the order of a graph's inputs.

    Raises:
        InputError: wrong count, rank or dtype, or an extent below 0; names the input and what was expected.
    """
    if len(specs) != len(ports):
        raise InputError(describe_problem("inputs", f"got {len(specs)}", _listing(ports)))
    for port, spec in zip(ports, specs, strict=True):
        _check(port, spec)


def declared_inputs(ports: Sequence[Port], dynamic_extent: int) -> tuple[TensorSpec, ...] | None:
    """Return inputs of the declared shapes, with one size for dynamic axes; None if the file declares none."""
    specs = []
    for port in ports:
        if port.shape is None or port.dtype is None:
            return None
        shape = tuple(dynamic_extent if dim is None else dim for dim in port.shape)
        specs.append(TensorSpec(shape, PNNX_COMPUTE[port.dtype]))
    return tuple(specs)


def _port(operator: RuntimeOperator, name: str, declared: pnnx.TensorType | None) -> Port:
    if declared is None or declared.dtype == "null":
        return Port(operator.name, name, None, None)
    return Port(operator.name, name, declared.shape, declared.dtype)


def _leaves(operand: RuntimeOperand) -> Iterator[tuple[str, pnnx.TensorType | None]]:
    """Yield name and declared type of every tensor in an operand, which may be a tuple or a list of others."""
    producer = operand.producer
    if producer.type in ("prim::TupleConstruct", "prim::ListConstruct"):
        for item in producer.inputs:
            yield from _leaves(item)
        return
    nodes = _list_items(producer)
    if nodes is None:
        yield operand.name, operand.type
        return
    for index, node in enumerate(nodes):
        if isinstance(node, OperandNode) and node.index < len(producer.inputs):
            yield from _leaves(producer.inputs[node.index])
        else:
            yield f"{operand.name}[{index}]", None


def _list_items(producer: RuntimeOperator) -> tuple[ExpressionNode, ...] | None:
    """Return the items of an expression that gives a list, None for anything else."""
    source = producer.params.get("expr") if producer.type == "pnnx.Expression" else None
    if not isinstance(source, str) or not source.startswith("["):
        return None
    try:
        root = parse(source)
    except ExpressionError:
        return None  # build() reports it with the operator's name
    return root.items if isinstance(root, ListNode) else None


def _plain(ports: Sequence[Port], inputs: Inputs) -> dict[str, Array] | None:
    """Return inputs that plainly are what a graph declares: most are, and a run should not take long to see it.

    None where they have to be looked at more closely.
    """
    values: Iterable[Any]
    if type(inputs) is dict:
        if list(inputs) != [port.operand for port in ports]:
            return None
        values = inputs.values()
    elif (type(inputs) is list or type(inputs) is tuple) and len(inputs) == len(ports):
        values = inputs
    else:
        return None
    arrays = {}
    for port, value in zip(ports, values, strict=True):
        if type(value) is not np.ndarray or port.dtype is None or port.shape is None:
            return None
        dtype = value.dtype
        if dtype != PNNX_COMPUTE[port.dtype] or value.ndim != len(port.shape) or not dtype.isnative:
            return None
        arrays[port.operand] = value
    return arrays


def _by_order(ports: Sequence[Port], inputs: Sequence[npt.ArrayLike]) -> dict[str, npt.ArrayLike]:
    if len(inputs) != len(ports):
        raise InputError(describe_problem("inputs", f"got {len(inputs)}", _listing(ports)))
    return {port.operand: value for port, value in zip(ports, inputs, strict=True)}


def _not_one(ports: Sequence[Port], inputs: object) -> dict[str, npt.ArrayLike]:
    raise InputError(
        describe_problem("inputs", f"got one {type(inputs).__name__}", f"a list of {_listing(ports)}")
    )


def _by_name(ports: Sequence[Port], inputs: Mapping[str, npt.ArrayLike]) -> dict[str, npt.ArrayLike]:
    if list(inputs) == [port.operand for port in ports]:
        return dict(inputs)
    given = {}
    rest = dict(inputs)
    for port in ports:
        keys = [key for key in dict.fromkeys((port.operator, port.operand)) if key in rest]
        if len(keys) != 1:
            problem = "is missing" if not keys else f"is given twice, as {keys[0]!r} and {keys[1]!r}"
            raise InputError(describe_problem(f"input {port.operator!r}", problem, _listing(ports)))
        given[port.operand] = rest.pop(keys[0])
    if rest:
        unknown = ", ".join(repr(name) for name in rest)
        raise InputError(describe_problem("inputs", f"no input is called {unknown}", _listing(ports)))
    return given


def _as_array(port: Port, value: npt.ArrayLike) -> Array:
    """Return a value as an array in the machine's byte order, Python's numbers as the input takes them."""
    if type(value) is np.ndarray and value.dtype.isnative:
        return value
    try:
        array = np.asarray(value)
    # PyTorch raises RuntimeError for a tensor that needs its gradient, with the cure in its message
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(
            describe_problem(_place(port), f"no array: {error}", f"an array, like {port}")
        ) from error
    if isinstance(value, list | tuple | bool | int | float | complex):
        return _from_numbers(port, array)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _from_numbers(port: Port, array: Array) -> Array:
    """Turn an array that numpy made of Python's numbers, and so chose the dtype of, into what an input takes.

    Without a declared dtype it is what PyTorch makes of them: floats are f32. Floats are rounded to the precision of
    the input; anything else must be represented exactly.
    """
    if port.dtype is None:
        narrow = {"f": np.float32, "c": np.complex64}.get(array.dtype.kind, array.dtype)
        return array.astype(narrow, copy=False)
    dtype = PNNX_COMPUTE[port.dtype]
    if array.dtype.kind not in "biufc" or (array.dtype.kind == "c" and dtype.kind != "c"):
        return array
    with np.errstate(all="ignore"):
        converted = array.astype(dtype)
        rounds = array.dtype.kind in "fc" and dtype.kind in "fc"
        # back in the dtype that it had: comparing the two would round both
        kept = (
            np.isfinite(converted) == np.isfinite(array) if rounds else converted.astype(array.dtype) == array
        )
    if not kept.all():
        problem = f"{array[~kept].flat[0]} is not representable as {port.dtype}"
        raise InputError(describe_problem(_place(port), problem, f"numbers that {port} can hold"))
    return converted


def _check(port: Port, spec: TensorSpec, *, is_array: bool = False) -> None:
    """Check a value for an input; for an array, the message also suggests a fix."""
    dtypes = list(PNNX_COMPUTE.values()) if port.dtype is None else [PNNX_COMPUTE[port.dtype]]
    if spec.dtype not in dtypes:
        words = port.dtype or f"one of {', '.join(PNNX_COMPUTE)}"
        if is_array and len(dtypes) == 1 and spec.dtype.kind in "biufc":
            words += f", which array.astype({_spell(dtypes[0])}) makes of it"
        raise InputError(describe_problem(_place(port), f"dtype is {pnnx_name(spec.dtype)}", words))
    if port.shape is not None and spec.rank != len(port.shape):
        problem = f"shape {spec.shape} has {spec.rank} dimensions"
        expected = f"{len(port.shape)}, like {port}"
        if is_array and spec.rank == len(port.shape) - 1:
            expected += " (array[None] adds one; a list holds inputs, not rows)"
        raise InputError(describe_problem(_place(port), problem, expected))
    if any(extent < 0 for extent in spec.shape):
        raise InputError(
            describe_problem(_place(port), f"shape {spec.shape} has a negative extent", f"{port}")
        )


def _spell(dtype: np.dtype[Any]) -> str:
    return "bool" if dtype == np.bool_ else f"np.{dtype.name}"


def _place(port: Port) -> str:
    return f"input {port.operator!r}, operand {port.operand!r}"


def _listing(ports: Sequence[Port]) -> str:
    return f"{len(ports)} ({'; '.join(f'{port.operator} {port}' for port in ports)})"
