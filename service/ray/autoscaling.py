"""The number of replicas that a load needs: asked by Ray's controller, from the numbers that the replicas report."""

from typing import Any


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
            context: Ray's `AutoscalingContext`; its metrics are means over `look_back_period_s`, by replica: those of
                `Replica.record_autoscaling_stats`.
        """
        metrics = context.aggregated_metrics or {}
        workers = metrics.get("workers", {})
        if not workers:
            return context.target_num_replicas, {}  # no replica has reported yet
        each = sum(workers.values()) / len(workers)
        return sum(metrics.get("load", {}).values()) / (each * self._target), {}
