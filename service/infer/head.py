"""The head of a request to `POST /infer`, and the call that its body makes of it."""

from math import inf

from starlette.datastructures import QueryParams
from starlette.requests import Request

from service.codec import Options, negotiate, parse_options
from service.config.limits import Limits
from service.errors import ServiceError, shown
from service.infer.exchange import InferExchange
from service.infer.plain_head import PlainHead
from service.infer.rendering import PNG_TYPE
from service.repository.loaded_model import LoadedModel
from service.scheduling.answer import Answer
from service.scheduling.call import Call, SurfaceName
from service.tasks import Task

_TIMEOUT = "timeout"
_HEAD_NAMES = ("model", "version", _TIMEOUT)
"""Parameters that are read before the body, and are no options that it may set as well."""


class InferHead(PlainHead):
    """A request to `POST /infer` whose body has not arrived yet.

    Raises:
        ServiceError: 422 `invalid_parameter`, 406 `not_acceptable`.
    """

    surface = SurfaceName.INFER

    def __init__(self, request: Request, model: LoadedModel, request_id: str, limits: Limits) -> None:
        super().__init__(request, model, request_id, limits)
        self._content_type = _header(request, "content-type")
        self._options = _parse_query(request.query_params, model.task)
        self._timeout = _parse_timeout(request.query_params.get(_TIMEOUT))
        self._media_type = negotiate(_header(request, "accept"), (PNG_TYPE,))

    def call(self, body: bytes, received_ns: int) -> Call[Answer]:
        """Return the call. Raises nothing: the body is decoded later, by a worker."""
        exchange = InferExchange(
            model=self.model,
            request_id=self._request_id,
            body=body,
            content_type=self._content_type,
            options=self._options,
            media_type=self._media_type,
            limits=self._limits,
            received_ns=received_ns,
        )
        return self._call(exchange, received_ns, self._timeout)


def _header(request: Request, name: str) -> str | None:
    """Return a header; lines of the same name are one list, with commas between (RFC 9110, 5.3)."""
    return ", ".join(request.headers.getlist(name)) or None


def _parse_query(query: QueryParams, task: Task) -> Options:
    values = {name: value for name, value in query.items() if name not in _HEAD_NAMES}
    if "capture" in values:
        values["capture"] = ",".join(query.getlist("capture"))
    return parse_options(values, task.parameters)


def _parse_timeout(text: str | None) -> float | None:
    """Read the seconds after which a request is given up; None where it does not say.

    Raises:
        ServiceError: 422 `invalid_parameter`.
    """
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < inf:
        details = {"parameter": _TIMEOUT, "expected": "seconds, more than 0"}
        raise ServiceError(
            422, "invalid_parameter", f"timeout is {shown(text)}; expected seconds, more than 0", details
        )
    return seconds
