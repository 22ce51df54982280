"""The breadth-first execution of a graph, step by step: what runs, what becomes ready by it, and what others lack."""

from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

from engine import RuntimeGraph, RuntimeOperator

MAX_STEPS = 500
"""Maximum steps of one response."""
_MAX_SHOWN = 50
"""Maximum names of operators that are ready, in one step."""


def describe_schedule(graph: RuntimeGraph, first: int, count: int) -> dict[str, Any]:
    """Return steps of the execution of a built graph.

    Args:
        graph: the graph.
        first: number of the first step, from 0.
        count: most steps.
    """
    operators = graph.operators
    start = [operator.name for operator in operators if not operator.inputs]
    return {
        "operator_count": len(operators),
        "ready": start[:_MAX_SHOWN],
        "ready_count": len(start),
        "steps": list(islice(_steps(graph), first, first + min(count, MAX_STEPS))),
    }


def _steps(graph: RuntimeGraph) -> Iterator[dict[str, Any]]:
    """Yield what each step does. An operator is ready when as many of its inputs have met it as it has."""
    missing = Counter({operator: len(operator.inputs) for operator in graph.operators})
    ready = deque(operator for operator in graph.operators if not operator.inputs)
    step = 0
    while ready:
        operator = ready.popleft()
        met: dict[RuntimeOperator, int] = {}
        became_ready = []
        for operand in operator.outputs:
            for consumer in operand.consumers:
                missing[consumer] -= 1
                met[consumer] = missing[consumer]
                if not missing[consumer]:
                    ready.append(consumer)
                    became_ready.append(consumer.name)
        yield {
            "step": step,
            "operator": operator.name,
            "type": operator.type,
            "inputs": [operand.name for operand in operator.inputs],
            "outputs": [operand.name for operand in operator.outputs],
            "became_ready": became_ready,
            "waits_for": {consumer.name: lacking for consumer, lacking in met.items() if lacking},
            "ready": [waiting.name for waiting in islice(ready, _MAX_SHOWN)],
            "ready_count": len(ready),
        }
        step += 1
