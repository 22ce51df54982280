"""Shares of traffic that one of several processes has taken back: all of them do the same."""

import asyncio
import json

from anyio import CapacityLimiter, to_thread

from service.processes.messages import Call
from service.processes.siblings import Siblings
from service.repository.loaded_model import LoadedModel
from service.services import Services
from service.traffic.model_traffic import ModelTraffic
from service.traffic.rollback import Rollback, RollbackCause

ROLLBACK = "kuiper-rollback"
"""Name of the header in which a process tells the others of a rollback; a client's never gets that far."""
_THREADS = CapacityLimiter(1)
"""Threads that read weights for their digest: those of routes may all wait for other processes."""


class RollbackNews:
    """Has all processes take back the share of a version that one of them has taken back.

    Args:
        siblings: the other processes.
    """

    def __init__(self, siblings: Siblings) -> None:
        self._siblings = siblings
        self._tasks: set[asyncio.Task[None]] = set()

    def tell(self, model: LoadedModel, rollback: Rollback) -> None:
        """Tell the other processes; returns at once. Called on the event loop."""
        task = asyncio.get_running_loop().create_task(self._tell(model, rollback))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self, model: LoadedModel, rollback: Rollback) -> None:
        told = {
            "version": model.version,
            "digest": await _digest(model),
            "cause": rollback.cause.value,
            "reason": rollback.reason,
            "epoch_ms": rollback.epoch_ms,
        }
        await self._siblings.change(
            Call("POST", f"/models/{model.name}/traffic/rollback", headers=((ROLLBACK, json.dumps(told)),))
        )


async def follow(services: Services, traffic: ModelTraffic, told: str, *, is_repeated: bool) -> None:
    """Roll back what a process has rolled back, unless it is another version of that number here.

    Args:
        services: the parts of the server.
        traffic: that of the model.
        told: what the process said.
        is_repeated: whether another process did so before, and has counted it.
    """
    found = json.loads(told)
    model = services.repository.entry(traffic.name).versions.get(found["version"])
    if model is None or await _digest(model) != found["digest"]:
        return
    rollback = Rollback(RollbackCause(found["cause"]), found["reason"], found["epoch_ms"])
    traffic.roll_back(found["version"], rollback, is_repeated=is_repeated)


async def _digest(model: LoadedModel) -> str:
    return await to_thread.run_sync(lambda: model.digest, limiter=_THREADS)
