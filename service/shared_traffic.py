"""The traffic of models in this process and in all others of the server: what they counted, and what they take back."""

import asyncio
import json
from collections.abc import Iterable
from http import HTTPStatus

from anyio import CapacityLimiter, to_thread
from pydantic import BaseModel

from service.processes.messages import Call
from service.processes.siblings import Siblings
from service.repository.loaded_model import LoadedModel
from service.repository.model_entry import ModelEntry
from service.repository.traffic_schemas import TrafficDetail, TrafficView
from service.services import Services
from service.traffic.model_traffic import ModelTraffic
from service.traffic.rollback import Rollback, RollbackCause
from service.traffic.sum import sum_details, sum_views
from service.traffic.view import describe_traffic, describe_traffic_in_detail

ROLLBACK = "kuiper-rollback"
"""Name of the header in which a process tells the others of a rollback; a client's never gets that far."""


_THREADS = CapacityLimiter(1)
"""Threads that read weights for their digest: those of routes may all wait for other processes."""


class _Listed(BaseModel):
    name: str
    traffic: TrafficView | None = None


class _List(BaseModel):
    models: list[_Listed]


class SharedTraffic:
    """Shows the traffic of models as all processes have counted it.

    Args:
        services: the parts of the server.
        is_alone: whether what this process alone has counted is shown.
    """

    def __init__(self, services: Services, is_alone: bool) -> None:
        self._services = services
        self._siblings = None if is_alone else services.siblings

    async def show(self, traffic: ModelTraffic) -> TrafficDetail:
        """Return what `GET /models/NAME/traffic` shows."""
        own = describe_traffic_in_detail(traffic)
        bodies = await self._ask(f"/models/{traffic.name}/traffic")
        return sum_details(own, [TrafficDetail.model_validate_json(body) for body in bodies])

    async def show_all(self, entries: Iterable[ModelEntry]) -> dict[str, TrafficView]:
        """Return what `GET /models` shows of each model that has a `[traffic]` table, by name."""
        found = self._services.traffic.of_all(entries)
        if not found:
            return {}
        views = {name: describe_traffic(traffic) for name, traffic in found.items()}
        others: dict[str, list[TrafficView]] = {name: [] for name in views}
        for body in await self._ask("/models"):
            for listed in _List.model_validate_json(body).models:
                if listed.traffic is not None and listed.name in others:
                    others[listed.name].append(listed.traffic)
        return {name: sum_views(view, others[name]) for name, view in views.items()}

    async def _ask(self, path: str) -> list[bytes]:
        if self._siblings is None:
            return []
        replies = await self._siblings.ask(Call("GET", path))
        return [reply.body for reply in replies if reply.status == HTTPStatus.OK]


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
