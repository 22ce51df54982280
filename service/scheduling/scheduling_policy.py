"""How the calls of one model are scheduled: as its `model.toml` says, or else the settings of the server."""

from dataclasses import dataclass

from service.config.model_config import BatchingConfig, ModelConfig
from service.config.settings import Settings
from service.repository.batching import UNBATCHED, Batching
from service.scheduling.batching_policy import BatchingPolicy


@dataclass(frozen=True, slots=True)
class SchedulingPolicy:
    """How the calls of one model are scheduled.

    Attributes:
        workers: most workers that run the model at the same time.
        threads: number of threads that the arithmetic of one run may use.
        queue_size: number of calls that may wait while these workers are busy.
        timeout: seconds until a call is given up; a call may ask for less.
        priority: priority of calls that state none; 1 is served first.
        batching: how calls are run together; None where each is run on its own.
    """

    workers: int = 1
    threads: int = 1
    queue_size: int = 64
    timeout: float = 30.0
    priority: int = 1
    batching: BatchingPolicy | None = None


def scheduling_policy(
    config: ModelConfig, settings: Settings, batching: Batching = UNBATCHED
) -> SchedulingPolicy:
    """Return the policy of a model.

    Args:
        config: its `model.toml`.
        settings: the server's, for what the model does not set.
        batching: whether the model was proved to take batches when it was loaded, and how large ones.
    """
    own = config.scheduling
    return SchedulingPolicy(
        workers=min(own.workers or settings.worker_count, settings.worker_count),
        threads=own.threads or settings.thread_count,
        queue_size=settings.queue_size if own.queue_size is None else own.queue_size,
        timeout=own.timeout or settings.timeout,
        priority=own.default_priority,
        batching=_batching_policy(config.batching, batching) if batching.is_on else None,
    )


def _batching_policy(own: BatchingConfig, batching: Batching) -> BatchingPolicy:
    return BatchingPolicy(
        batching.max_batch_size, (own.max_queue_delay_ms or 0.0) / 1e3, own.preferred_batch_sizes
    )
