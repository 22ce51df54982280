"""The traced runs that this process holds, as `/traces` shows them."""

import orjson

from service.errors import ServiceError
from service.services import Services
from service.telemetry.chrome_trace import chrome_trace
from service.telemetry.trace_view import describe, summarize


class KeptTraces:
    """Traced runs as JSON. Its methods are called on any thread but the event loop's.

    Args:
        services: the parts of the server.
        client: whose runs are shown, the digest of an API key; None: those of all clients.
    """

    def __init__(self, services: Services, client: bytes | None = None) -> None:
        self._recent = services.telemetry.recent
        self._traffic = services.traffic
        self._process = services.process
        self._client = client

    def list_all(self) -> bytes:
        """Return a `TraceList`, newest first."""
        runs = self._recent.newest_first(self._client)
        return _dump({"traces": [summarize(run, self._process) for run in runs]})

    def draw_all(self) -> bytes:
        """Return a `ChromeTrace` of all runs."""
        return _dump(chrome_trace(self._recent.newest_first(self._client)))

    def show(self, request_id: str, *, is_drawn: bool) -> bytes:
        """Return the newest run of a request, as a `TraceDetail` or a `ChromeTrace`.

        Raises:
            ServiceError: 404 `trace_not_found`.
        """
        run = self._recent.find(request_id, self._client)
        if run is None:
            message = f"no trace of a request {request_id[:80]!r}; GET /traces lists the stored ones"
            if self._process is not None:
                message += (
                    f"; this is process {self._process}, and another process of the server may hold the trace: repeat "
                    "on a new connection, or serve with one process"
                )
            raise ServiceError(404, "trace_not_found", message, {"request_id": request_id[:128]})
        if is_drawn:
            return _dump(chrome_trace([run]))
        shadow = self._traffic.find_shadow_run(run.record.model, run.record.request_id)
        return _dump(describe(run, shadow, self._process))


def _dump(content: object) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
