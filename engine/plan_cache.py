"""LRU cache of a graph's plans, one per combination of input shapes."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from engine.build_clock import BuildClock
from engine.executor import Planner
from engine.operator import RuntimeOperand, RuntimeOperator
from engine.plan import Plan, make_plan
from engine.spec import TensorSpec

PLANS_PER_PROGRAM = 2
"""Cached plans (LRU) per program in the cache: a plan takes little memory."""


def cached_planner(
    order: Sequence[RuntimeOperator],
    operands: Mapping[str, RuntimeOperand],
    inputs: Sequence[str],
    max_run_bytes: int,
    programs_kept: int,
    max_seconds: float | None = None,
) -> Planner:
    """Return what makes plans of a graph, or returns those that it made before.

    It holds no graph: a cache around a method of a graph would hold that, which holds the cache.

    Args:
        order: operators in the order in which they run.
        operands: all operands by name.
        inputs: operand names of the graph's inputs.
        max_run_bytes: maximum bytes of live tensors in a run.
        programs_kept: maximum compiled programs in the cache.
        max_seconds: maximum planning time in seconds; None for no limit.
    """

    def plan(specs: tuple[TensorSpec, ...]) -> Plan:
        clock = BuildClock(max_seconds, "planning")
        return make_plan(order, operands, dict(zip(inputs, specs, strict=True)), max_run_bytes, clock)

    return lru_cache(maxsize=PLANS_PER_PROGRAM * programs_kept)(plan)
