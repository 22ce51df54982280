"""The traffic of a server's models, with all that it makes use of."""

from collections.abc import Callable, Mapping

from engine import Array
from service.config.settings import Settings
from service.repository.loaded_model import LoadedModel
from service.repository.traffic_schemas import DivergenceView
from service.scheduling.scheduler import Scheduler
from service.traffic.shadows import Shadows
from service.traffic.traffic import Traffic


def make_traffic(settings: Settings, scheduler: Scheduler) -> Traffic:
    """Return the traffic of a server that loads its models.

    Args:
        settings: the server's.
        scheduler: its queues and workers.
    """
    return Traffic(Shadows(scheduler, settings.worker_count, _find_divergence))


def _find_divergence(
    model: LoadedModel,
    other: LoadedModel,
    inputs: Mapping[str, Array],
    tolerance: float,
    stop: Callable[[], str | None],
) -> DivergenceView | None:
    # it takes a while to import, and hardly any server needs it
    from service.inspection.divergence import find_divergence  # noqa: PLC0415

    return find_divergence(model, other, inputs, tolerance, stop)
