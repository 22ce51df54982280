"""How the calls of one model are scheduled: its `model.toml`, and the server's settings where that is silent."""

from dataclasses import dataclass

from service.model_config import ModelConfig
from service.settings import Settings


@dataclass(frozen=True, slots=True)
class Policy:
    """How the calls of one model are scheduled.

    Attributes:
        workers: most workers that are on it side by side.
        threads: threads that the arithmetic of one run may use.
        queue_size: calls that may wait while these workers are busy.
        timeout: seconds until a call is given up; a call may ask for less.
        priority: priority of calls that name none; 1 is served first.
    """

    workers: int = 1
    threads: int = 1
    queue_size: int = 64
    timeout: float = 30.0
    priority: int = 1


def policy_of(config: ModelConfig, settings: Settings) -> Policy:
    """Return the policy of a model."""
    own = config.scheduling
    return Policy(
        workers=min(own.workers or settings.worker_count, settings.worker_count),
        threads=own.threads or settings.thread_count,
        queue_size=settings.queue_size if own.queue_size is None else own.queue_size,
        timeout=own.timeout or settings.timeout,
        priority=own.default_priority,
    )
