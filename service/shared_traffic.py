"""The traffic of models in this process and in all others of the server: what all of them have counted."""

from collections.abc import Iterable
from http import HTTPStatus

from pydantic import BaseModel

from service.processes.messages import Call
from service.repository.model_entry import ModelEntry
from service.repository.traffic_schemas import TrafficDetail, TrafficView
from service.services import Services
from service.traffic.model_traffic import ModelTraffic
from service.traffic.sum import sum_details, sum_views
from service.traffic.view import describe_traffic, describe_traffic_in_detail


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
