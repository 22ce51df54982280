"""Tells which requests a connection answers itself, and takes them."""

import logging

from fastapi import FastAPI
from starlette.datastructures import QueryParams

from service.context import RequestContext, choose_request_id
from service.errors import ServiceError
from service.http.access import Access
from service.http.body_budget import STEP, BodyBudget, Reservation
from service.infer.inference import open_inference
from service.lifecycle import Phase
from service.scheduling.intake import Intake
from service.server.fast_path.head import Fields, Head, read_head
from service.server.fast_path.request import DirectRequest, Line
from service.services import Services
from service.v2.intake import V2Intake

_logger = logging.getLogger(__name__)
_V2_LEAD, _V2_TAIL = "/v2/models/", "/infer"
_NAMED, _VERSIONED = 1, 3
"""Parts between the two: `NAME`, or `NAME/versions/V`."""


class Desk:
    """Where a server's plain requests are taken.

    Args:
        services: the server's parts.
        access: who may ask for what.
        budget: room for bodies.
    """

    def __init__(self, services: Services, access: Access, budget: BodyBudget) -> None:
        self._services = services
        self._access = access
        self._budget = budget
        self._settings = services.settings
        self._longest = min(STEP, services.settings.limits.body_bytes)
        # all answers to pages of other origins name what they vary by, those to others too
        self._is_open = services.telemetry.spans is None and not self._settings.cors_origins

    def take(self, line: Line, method: bytes, url: bytes, fields: Fields) -> DirectRequest | None:
        """Return a request that is answered here; None for one that is the application's."""
        if not self._is_open or method != b"POST" or self._services.lifecycle.phase is not Phase.READY:
            return None
        head = read_head(url, fields, self._longest)
        if head is None:
            return None
        if self._access.is_limited and self._access.refusal("POST", head.path, fields) is not None:
            return None
        context = RequestContext(choose_request_id(fields))
        reservation = Reservation(self._budget, head.length)
        try:
            found = self._open(head, context)
            if found is None:
                return None
            route, intake = found
            self._services.dispatcher.check_room(intake.model)
            reservation.expect(0)
            context.model = intake.model.name
            return DirectRequest(self._services, line, context, route, intake, head.length, reservation)
        except ServiceError:
            pass  # the application finds the same, and says so
        except Exception:  # it would be taken for an error of the parser's
            _logger.exception("a request is left to the application")
        reservation.release()
        return None

    def _open(self, head: Head, context: RequestContext) -> tuple[str, Intake] | None:
        """Return the route that a request takes, and its intake; None for a path that is no way to a model."""
        path, repository, limits = head.path, self._services.repository, self._settings.limits
        if path == "/infer":
            query = QueryParams(head.query)
            model = repository.find(query.get("model"), query.get("version"))
            return path, open_inference(model, context.request_id, query, head.headers.get, limits)
        if not path.startswith(_V2_LEAD) or not path.endswith(_V2_TAIL):
            return None
        parts = path[len(_V2_LEAD) : -len(_V2_TAIL)].split("/")
        if not all(parts):
            return None
        if len(parts) == _NAMED:
            route, model = "/v2/models/{name}/infer", repository.find(parts[0])
        elif len(parts) == _VERSIONED and parts[1] == "versions":
            route = "/v2/models/{name}/versions/{version}/infer"
            model = repository.find(parts[0], parts[2])
        else:
            return None
        return route, V2Intake(model, context.request_id, head.headers.get, limits)


def desk_of(app: FastAPI) -> Desk:
    """Return the desk of an application's server."""
    desk = app.state.desk
    if not isinstance(desk, Desk):
        raise TypeError(f"app.state.desk is a {type(desk).__name__}")
    return desk
