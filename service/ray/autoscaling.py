"""How many replicas a load takes: what Ray's controller asks, by the numbers that the replicas report."""

from collections.abc import Mapping
from typing import Any

BUSY = "busy"
"""Workers that have work."""
WAITING = "waiting"
"""Requests that wait for a worker."""
WORKERS = "workers"
"""Workers of a replica."""


class LoadPolicy:
    """Chooses the number of replicas at which each worker has the wanted load; Ray adds delays and bounds.

    Args:
        target_load: requests that run or wait, for each worker.
    """

    def __init__(self, target_load: float) -> None:
        self._target = target_load

    def __call__(self, context: Any) -> tuple[float, dict[str, Any]]:
        """Return how many replicas there should be, and nothing to remember.

        Args:
            context: Ray's `AutoscalingContext`; its metrics are means over `look_back_period_s`, by replica.
        """
        metrics: Mapping[str, Mapping[Any, float]] = context.aggregated_metrics or {}
        workers = metrics.get(WORKERS, {})
        if not workers:
            return context.target_num_replicas, {}  # no replica has reported yet
        load = sum(metrics.get(BUSY, {}).values()) + sum(metrics.get(WAITING, {}).values())
        each = sum(workers.values()) / len(workers)
        return load / (each * self._target), {}
