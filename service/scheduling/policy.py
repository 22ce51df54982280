"""How a model's requests are scheduled: its `model.toml`, else the settings of the server."""

from dataclasses import dataclass

from service.config.model_config import ModelConfig
from service.config.settings import Settings
from service.repository.batching import UNBATCHED, Batching


@dataclass(frozen=True, slots=True)
class SchedulingPolicy:
    """How a model's requests are scheduled.

    Attributes:
        workers: maximum concurrent runs.
        queue_size: maximum queued requests.
        timeout: seconds; a request may ask for less.
        priority: of requests without a priority; 1 is served first.
        max_batch_size: maximum rows of a run that serves several requests; 1 for no batches.
        max_queue_delay: maximum seconds that a request waits for its batch to fill.
        preferred_batch_sizes: numbers of rows that run at once, without waiting for more.
    """

    workers: int = 1
    queue_size: int = 64
    timeout: float = 30.0
    priority: int = 1
    max_batch_size: int = 1
    max_queue_delay: float = 0.0
    preferred_batch_sizes: tuple[int, ...] = ()


def scheduling_policy(
    config: ModelConfig, settings: Settings, batching: Batching = UNBATCHED
) -> SchedulingPolicy:
    """Return the policy of a model.

    Args:
        config: its `model.toml`.
        settings: the server's, for what the model does not set.
        batching: maximum batch size that was verified at load.
    """
    own = config.scheduling
    return SchedulingPolicy(
        workers=min(own.workers or settings.worker_count, settings.worker_count),
        queue_size=settings.queue_size if own.queue_size is None else own.queue_size,
        timeout=own.timeout or settings.timeout,
        priority=own.default_priority,
        max_batch_size=batching.max_batch_size,
        max_queue_delay=(config.batching.max_queue_delay_ms or 0.0) / 1e3,
        preferred_batch_sizes=config.batching.preferred_batch_sizes,
    )
