"""Describes a graph as plain values that JSON can represent."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from engine import Plan, Port, RuntimeGraph, RuntimeOperand, RuntimeOperator, TensorSpec, pnnx_name


def describe_graph(graph: RuntimeGraph) -> dict[str, Any]:
    """Return nodes, operands and execution order of a built graph.

    Multiply-adds, and shapes that the file leaves out, are those of a run on the shapes that the file declares,
    dynamic dimensions taken as 1; None where there is no such run.
    """
    plan = graph.declared_plan()
    multiply_adds = {step.operator.name: step.multiply_adds for step in plan.steps} if plan else {}
    precisions = graph.precisions
    return {
        "nodes": [
            _describe_node(operator)
            | {
                "multiply_adds": multiply_adds.get(operator.name),
                "precision": precisions[operator.name].value,
            }
            for operator in graph.operators
        ],
        "operands": [_describe_operand(operand, plan) for operand in graph.operands.values()],
        "execution_order": [operator.name for operator in graph.execution_order],
    }


def count_precisions(graph: RuntimeGraph) -> dict[str, int]:
    """Return how many operators of a built graph are computed in each precision that occurs."""
    return dict(Counter(precision.value for precision in graph.precisions.values()))


def describe_ports(ports: Sequence[Port]) -> list[dict[str, Any]]:
    """Return a graph's inputs or outputs; a dynamic dimension is None, and so is a shape that is not declared."""
    return [
        {
            "name": port.operator,
            "operand": port.operand,
            "shape": None if port.shape is None else list(port.shape),
            "dtype": port.dtype,
        }
        for port in ports
    ]


def json_safe(value: object) -> Any:
    """Convert a parameter's value to one that JSON can represent.

    Numbers that JSON cannot represent become strings: `"Infinity"`, `"-Infinity"`, `"NaN"`, and complex numbers as
    `"1+2j"`.
    """
    if isinstance(value, tuple | list):
        return [json_safe(item) for item in value]
    if isinstance(value, complex):
        return str(value).strip("()")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _describe_node(operator: RuntimeOperator) -> dict[str, Any]:
    return {
        "name": operator.name,
        "type": operator.type,
        "parameters": {key: json_safe(value) for key, value in operator.params.items()},
        "attributes": {
            key: {"shape": list(attribute.shape), "dtype": attribute.dtype}
            for key, attribute in operator.attrs.items()
        },
        "inputs": [operand.name for operand in operator.inputs],
        "outputs": [operand.name for operand in operator.outputs],
    }


def _describe_operand(operand: RuntimeOperand, plan: Plan | None) -> dict[str, Any]:
    shape, dtype = _type_of(operand, plan)
    return {
        "name": operand.name,
        "shape": shape,
        "dtype": dtype,
        "producer": operand.producer.name,
        "consumers": [consumer.name for consumer in operand.consumers],
    }


def _type_of(operand: RuntimeOperand, plan: Plan | None) -> tuple[list[int | None] | None, str | None]:
    if operand.type is not None and operand.type.dtype != "null":
        return list(operand.type.shape), operand.type.dtype
    spec = plan.specs.get(operand.name) if plan else None
    if isinstance(spec, TensorSpec):
        return list(spec.shape), pnnx_name(spec.dtype)
    return None, None
