"""Expressions over truth values, integers and float32, which kernels all compute as float32.

An integer is followed by its bounds: where a result could be beyond what float32 holds exactly, numpy computes it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine import expression as source
from engine.compiler.emit.pointwise import MAX_NODES, ZERO, Leaf, Literal, PointwiseExpression, apply
from engine.compiler.graph import EXACT, FLOAT, Bounds, Node, Reshape, Tensor
from engine.compiler.lowering.context import OF_MASKS, LoweringContext, is_readable, lowers, reads_all
from engine.compiler.lowering.pointwise import number, pointwise
from engine.dtypes import TORCH_DTYPES
from engine.spec import Spec, TensorSpec

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_ARITHMETIC = ("add", "sub", "mul")
_LOGIC = {"and": "minimum", "or": "maximum", "xor": "ne"}
"""Name of an operator on truth values -> the function of their numbers."""
_ALIASES = {"max": "maximum", "min": "minimum"} | {f"bitwise_{name}": name for name in _LOGIC}
"""Name of a function in expressions -> the name that it has here."""
_FLOATS = frozenset(
    (
        *("div", "pow", "neg", "abs", "sqrt", "rsqrt", "square", "reciprocal"),
        *("exp", "expm1", "log", "log1p", "tanh", "sigmoid", "erf", "sin", "cos"),
        *("floor", "ceil", "round", "trunc"),
    )
)
"""Functions of float32 in expressions."""
_TRUTH: Bounds = (0, 1)


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression, and what it gives.

    Attributes:
        expression: over tensors, from `Leaf(1)` on.
        kind: "b" for truth values, "i" for integers, "f" for float32.
        bounds: least and largest integer; None of float32, and where they are not known to be exact.
        largest: largest magnitude of all integers that it is made of, as far as they are known.
    """

    expression: PointwiseExpression
    kind: str
    bounds: Bounds | None = None
    largest: int = 0

    @property
    def is_small(self) -> bool:
        """Whether it is an integer below the largest that is exact: nothing that was rounded is equal to it."""
        return self.bounds is not None and self.bounds[0] > -EXACT and self.bounds[1] < EXACT


def _made(expression: PointwiseExpression, kind: str, bounds: Bounds | None, *parts: Typed) -> Typed:
    """Return an expression of others."""
    own = 0 if bounds is None else max(-bounds[0], bounds[1])
    return Typed(expression, kind, bounds, max((own, *(part.largest for part in parts))))


def typed_tensor(tensor: Tensor, place: int) -> Typed:
    """Return the leaf of a tensor that kernels read."""
    kind = "f" if tensor.dtype == FLOAT else "b" if tensor.dtype.kind == "b" else "i"
    return _made(Leaf(place), kind, tensor.bounds)


def typed_number(value: object) -> Typed | None:
    """Return a plain number or truth value; None for anything else."""
    literal = number(int(value) if isinstance(value, bool) else value)
    if literal is None:
        return None
    if isinstance(value, int):
        bounds = (int(value), int(value)) if abs(value) <= EXACT else None
        return _made(literal, "b" if isinstance(value, bool) else "i", bounds)
    return Typed(literal, "f")


def compared(function: str, left: Typed, right: Typed) -> Typed | None:
    """Return a comparison; None if rounded numbers might be compared wrongly."""
    is_float = "f" in (left.kind, right.kind)
    are_exact = left.bounds is not None and right.bounds is not None
    if not (is_float or are_exact or left.is_small or right.is_small):
        return None
    return _made(apply(function, left.expression, right.expression), "b", _TRUTH, left, right)


def truth(value: Typed) -> Typed:
    """Return whether numbers are not 0."""
    return value if value.kind == "b" else _made(apply("ne", value.expression, 0.0), "b", _TRUTH, value)


def combined(function: str, left: Typed, right: Typed) -> Typed | None:
    """Return the sum, difference, product, lesser or greater; None where an integer might not be exact."""
    expression = apply(function, left.expression, right.expression)
    if "f" in (left.kind, right.kind):
        return _made(expression, "f", None, left, right)
    if left.bounds is None or right.bounds is None or left.kind == right.kind == "b":
        return None
    made = _ends(function, left.bounds, right.bounds)
    bounds = min(made), max(made)
    return _made(expression, "i", bounds, left, right) if max(-bounds[0], bounds[1]) <= EXACT else None


def _ends(function: str, left: Bounds, right: Bounds) -> Sequence[int]:
    """Return integers between the least and largest of which the results are."""
    if function in ("maximum", "minimum"):
        choose = max if function == "maximum" else min
        return [choose(pair) for pair in zip(left, right, strict=True)]
    compute = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__}[function]
    return [compute(a, b) for a in left for b in right]


def chosen(condition: Typed, yes: Typed, no: Typed) -> Typed | None:
    """Return one of two values of one kind, or of numbers that are converted to the other's."""
    kind = max(yes.kind, no.kind, key="bif".index)
    bounds = None
    if kind != "f":
        if yes.bounds is None or no.bounds is None:
            return None
        bounds = min(yes.bounds[0], no.bounds[0]), max(yes.bounds[1], no.bounds[1])
    return _made(
        apply("where", condition.expression, yes.expression, no.expression), kind, bounds, condition, yes, no
    )


def converted(value: Typed, dtype: np.dtype[Any]) -> Typed | None:
    """Return a value as another dtype; None where kernels do not convert it."""
    if dtype == FLOAT:
        return _made(value.expression, "f", None, value)
    if dtype.kind == "b":
        return truth(value)
    if dtype.kind not in "iu" or value.kind == "f":
        return None
    if value.bounds is None or not _fits(value.bounds, dtype):
        return None
    return _made(value.expression, "i", value.bounds, value)


def compute(context: LoweringContext, value: Typed | None, tensors: Sequence[Tensor]) -> Node | None:
    """Return the node that computes a value of the operator's dtype; None where there is no such value."""
    output = context.outputs[0]
    if value is None or not isinstance(output, TensorSpec):
        return None
    kind = "f" if output.dtype == FLOAT else "b" if output.dtype.kind == "b" else "i"
    if value.kind != kind or (kind == "i" and not _fits(value.bounds, output.dtype)):
        return None
    if context.is_dynamic and value.largest >= EXACT:
        return None
    context.bounds = value.bounds
    return pointwise(context, list(tensors), value.expression)


def _fits(bounds: Bounds | None, dtype: np.dtype[Any]) -> bool:
    """Whether all integers between bounds are of a dtype."""
    limits = np.iinfo(dtype)
    return bounds is None or (limits.min <= bounds[0] and bounds[1] <= limits.max)


def operands(context: LoweringContext, names: Sequence[str]) -> tuple[list[Typed], list[Tensor]] | None:
    """Return arguments, tensors and numbers, and the tensors among them; None where kernels do not read one."""
    values: list[Typed] = []
    tensors: list[Tensor] = []
    for name in names:
        spec = context.spec(name)
        value: Typed | None
        if spec is None:
            value = typed_number(context.value(name))
        elif context.reads(name):
            tensors.append(context.tensor(name))
            value = typed_tensor(tensors[-1], len(tensors))
        elif context.is_constant(name) and is_readable(spec):
            tensors.append(context.make_constant(context.value(name)))
            value = typed_tensor(tensors[-1], len(tensors))
        else:
            return None
        if value is None:
            return None
        values.append(value)
    return (values, tensors) if tensors else None


def _register(type_name: str, make: Callable[..., Typed | None], *names: str) -> None:
    @lowers(type_name)
    @reads_all
    def rule(context: LoweringContext) -> Node | None:
        found = operands(context, names)
        return None if found is None else compute(context, make(*found[0]), found[1])


def _logical(function: str, left: Typed, right: Typed) -> Typed:
    expression = apply(_LOGIC[function], truth(left).expression, truth(right).expression)
    return _made(expression, "b", _TRUTH, left, right)


def bitwise(function: str, left: Typed, right: Typed) -> Typed | None:
    """Return and, or, exclusive or of truth values; None for bits of integers."""
    return _logical(function, left, right) if left.kind == right.kind == "b" else None


def negated(value: Typed) -> Typed:
    """Return whether numbers are 0."""
    return _made(apply("eq", value.expression, 0.0), "b", _TRUTH, value)


def _filled(x: Typed, mask: Typed, value: Typed) -> Typed | None:
    """Return a tensor with a number in place of some elements; the number is of the tensor's dtype."""
    if "bif".index(value.kind) > "bif".index(x.kind):
        return None
    return chosen(mask, value, x)


for _name in COMPARISONS:
    _register(f"torch.{_name}", lambda a, b, name=_name: compared(name, a, b), "input", "other")
for _name in _LOGIC:
    _register(f"torch.logical_{_name}", lambda a, b, name=_name: _logical(name, a, b), "input", "other")
    _register(f"torch.bitwise_{_name}", lambda a, b, name=_name: bitwise(name, a, b), "input", "other")
_register("torch.logical_not", negated, "input")
_register("torch.bitwise_not", lambda x: negated(x) if x.kind == "b" else None, "input")
_register("torch.where", lambda c, a, b: chosen(truth(c), a, b), "condition", "input", "other")
_register("Tensor.masked_fill", _filled, "input", "mask", "value")


@lowers("Tensor.to", "Tensor.type_as")
@reads_all
def convert(context: LoweringContext) -> Node | None:
    """Lower a change of the dtype: the numbers stay as they are, but for truth values made of others."""
    output = context.outputs[0]
    if not context.is_readable(0) or not isinstance(output, TensorSpec):
        return None
    x = context.operand(0)
    if x.dtype != output.dtype:
        value = converted(typed_tensor(x, 1), output.dtype)
        if value is None or value.expression != Leaf(1):
            return compute(context, value, [x])
    context.bounds = x.bounds if output.dtype != FLOAT else None
    return Reshape([context.index], [x], look=lambda view: [view])


@lowers("pnnx.Expression")
@reads_all
def expression(context: LoweringContext) -> Node | None:
    """Lower an expression over tensors and numbers."""
    given = context.value("expr")
    if not isinstance(given, source.Expression) or len(source.postorder(given.root)) > MAX_NODES:
        return None
    places = sorted(source.operands(given.root))
    tensors = [place for place in places if isinstance(context.inputs[place], TensorSpec)]
    if not tensors or not all(map(_may_compute, map(context.inputs.__getitem__, tensors))):
        return None
    operands = list(map(context.operand, tensors))
    for _ in range(2):
        leaves = {place: typed_tensor(operands[index], index + 1) for index, place in enumerate(tensors)}
        value = _translate(given.root, context, leaves)
        if value is not None or not _assume_small(context, tensors):
            break
    return compute(context, value, operands)


def _assume_small(context: LoweringContext, places: Sequence[int]) -> bool:
    """Assume that inputs of the graph are as small as masks; returns whether there are such."""
    integers = [place for place in places if context.operand(place).dtype.kind in "iu"]
    return bool([place for place in integers if context.assume(place, OF_MASKS)])


def _may_compute(spec: Spec) -> bool:
    """Whether kernels read a tensor and compute with it as numpy does: short integers would overflow."""
    if not isinstance(spec, TensorSpec) or not is_readable(spec):
        return False
    return spec.dtype.kind in "bf" or spec.dtype.itemsize >= np.dtype(np.int32).itemsize


def _translate(
    node: source.ExpressionNode, context: LoweringContext, leaves: dict[int, Typed]
) -> Typed | None:
    if isinstance(node, source.NumberNode | source.ConstantNode):
        return typed_number(node.value)
    if isinstance(node, source.OperandNode):
        return leaves.get(node.index) or typed_number(context.inputs[node.index])
    if not isinstance(node, source.CallNode):
        return None
    arguments = [_translate(argument, context, leaves) for argument in node.arguments]
    known = [argument for argument in arguments if argument is not None]
    if len(known) < len(arguments) or all(isinstance(argument.expression, Literal) for argument in known):
        return None  # numbers among themselves follow rules of their own
    return _called(node.function, known)


def _called(name: str, arguments: Sequence[Typed]) -> Typed | None:
    """Return a function of an expression, applied."""
    function = _ALIASES.get(name, name)
    if function in (*_ARITHMETIC, "maximum", "minimum"):
        return combined(function, *arguments)
    if function in _LOGIC:
        return bitwise(function, *arguments)
    if function in COMPARISONS:
        return compared(function, *arguments)
    if function in TORCH_DTYPES:
        return converted(arguments[0], TORCH_DTYPES[function])
    if function == "neg" and arguments[0].kind == "i":
        return combined("sub", Typed(ZERO, "i", (0, 0)), arguments[0])
    if function == "abs" and arguments[0].kind == "i" and arguments[0].bounds is not None:
        largest = max(-arguments[0].bounds[0], arguments[0].bounds[1])
        return _made(apply("abs", arguments[0].expression), "i", (0, largest), arguments[0])
    return _of_floats(function, arguments)


def _of_floats(function: str, arguments: Sequence[Typed]) -> Typed | None:
    """Return a function of float32 numbers; a quotient of integers is one as well."""
    others = [value for value in arguments if value.kind != "f"]
    if function not in _FLOATS:
        return None
    if function != "div" and not all(isinstance(value.expression, Literal) for value in others):
        return None
    return _made(apply(function, *(value.expression for value in arguments)), "f", None, *arguments)
