"""How the calls of one model are scheduled: its `model.toml`, and the server's settings where that is silent."""

from dataclasses import dataclass

from service.config.model_config import BatchingConfig, ModelConfig
from service.config.settings import Settings
from service.repository.batching import UNBATCHED, Batching
from service.scheduling.batch_rule import BatchRule


@dataclass(frozen=True, slots=True)
class Policy:
    """How the calls of one model are scheduled.

    Attributes:
        workers: most workers that are on it side by side.
        threads: threads that the arithmetic of one run may use.
        queue_size: calls that may wait while these workers are busy.
        timeout: seconds until a call is given up; a call may ask for less.
        priority: priority of calls that name none; 1 is served first.
        batches: how calls are run together; None where each is run on its own.
    """

    workers: int = 1
    threads: int = 1
    queue_size: int = 64
    timeout: float = 30.0
    priority: int = 1
    batches: BatchRule | None = None


def policy_of(config: ModelConfig, settings: Settings, batching: Batching = UNBATCHED) -> Policy:
    """Return the policy of a model.

    Args:
        config: its `model.toml`.
        settings: the server's, for what that does not say.
        batching: what was found out about it when it was loaded.
    """
    own = config.scheduling
    return Policy(
        workers=min(own.workers or settings.worker_count, settings.worker_count),
        threads=own.threads or settings.thread_count,
        queue_size=settings.queue_size if own.queue_size is None else own.queue_size,
        timeout=own.timeout or settings.timeout,
        priority=own.default_priority,
        batches=_batch_rule(config.batching, settings, batching) if batching.is_on else None,
    )


def _batch_rule(own: BatchingConfig, settings: Settings, batching: Batching) -> BatchRule:
    delay = settings.max_queue_delay_ms if own.max_queue_delay_ms is None else own.max_queue_delay_ms
    return BatchRule(batching.max_batch_size, delay / 1e3, own.preferred_batch_sizes)
