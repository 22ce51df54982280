"""What the layers say of every operand of a case, without any weights on disk."""

import math
from collections.abc import Mapping

import numpy as np

from engine import pnnx, registry
from engine.binding.bound_layer import BoundLayer
from engine.dtypes import PNNX_COMPUTE
from engine.errors import GraphError
from engine.model.operator import INPUT, OUTPUT
from engine.pnnx.parameter import parse_value
from engine.spec import Spec, TensorSpec
from tests.differential.case import GraphCase, Line

MAX_WEIGHTS = 1_600_000


def bind(line: Line) -> BoundLayer:
    """Bind an operator to its layer, with zeros for weights.

    Raises:
        KuiperError: the operator is not what the layer takes.
    """
    operator = pnnx.Operator(line.type, line.name, list(line.inputs), list(line.outputs))
    for word in line.words:
        key, _, value = word.partition("=")
        if key.startswith("$"):
            operator.input_names[key[1:]] = value
        elif not key.startswith(("@", "#")):
            operator.params[key] = parse_value(key, value)
    for key, shape, dtype in line.attributes():
        if math.prod(shape) > MAX_WEIGHTS:
            raise GraphError(f"{line.name}: more than {MAX_WEIGHTS} weights")
        operator.attrs[key] = pnnx.Attribute.from_array(np.zeros(shape, PNNX_COMPUTE[dtype]))
    layer = registry.find(line.type)
    if layer is None:
        raise GraphError(f"{line.name}: no layer for {line.type}")
    return BoundLayer(layer, operator)


def infer(line: Line, specs: Mapping[str, Spec]) -> tuple[Spec, ...]:
    """Infer what an operator gives.

    Raises:
        KuiperError: it cannot run on such inputs.
    """
    return bind(line).infer([specs[name] for name in line.inputs])


def infer_all(case: GraphCase, run: int) -> dict[str, Spec]:
    """Infer every operand of a case in one of its runs.

    Raises:
        KuiperError: an operator cannot run.
    """
    specs: dict[str, Spec] = {}
    for line, shape in zip(case.inputs, case.runs[run], strict=True):
        specs[line.outputs[0]] = TensorSpec(shape, line.dtype)
    for line in case.operators:
        if line.type not in (INPUT, OUTPUT):
            specs.update(zip(line.outputs, infer(line, specs), strict=True))
    return specs
