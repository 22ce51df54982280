"""The traced runs that are kept, in this process and in all others of the server, as `/traces` shows them."""

from http import HTTPStatus

import orjson

from service.errors import ServiceError
from service.processes.messages import Call, Reply
from service.services import Services
from service.telemetry.chrome_trace import chrome_trace, join_traces
from service.telemetry.recent_runs import RecentRun
from service.telemetry.trace_view import describe, summarize

CLIENT_HEADER = "kuiper-client"
"""Name of the header by which another process learns whose runs are asked for."""


class KeptTraces:
    """Traced runs as JSON. Its methods may wait for other processes, and are called on any thread but the event loop's.

    Args:
        services: the parts of the server.
        is_alone: whether runs of this process alone are shown.
        client: whose runs are shown, the digest of an API key; None: those of all clients.
    """

    def __init__(self, services: Services, *, is_alone: bool, client: bytes | None = None) -> None:
        self._recent = services.telemetry.recent
        self._traffic = services.traffic
        self._siblings = None if is_alone else services.siblings
        self._process = None if services.siblings is None else services.siblings.number
        self._client = client
        self.is_alone = is_alone

    def list_all(self) -> bytes:
        """Return a `TraceList`, newest first."""
        listed = [summarize(run, self._process) for run in self._recent.newest_first(self._client)]
        for reply in self._ask("/traces"):
            listed += orjson.loads(reply.body)["traces"]
        if self._siblings is not None:
            listed.sort(key=lambda trace: -trace["received_ms"])
        return _dump({"traces": listed})

    def draw_all(self) -> bytes:
        """Return a `ChromeTrace` of all runs."""
        drawn = chrome_trace(self._recent.newest_first(self._client))
        if self._siblings is None:
            return _dump(drawn)
        others = [
            (reply.process, orjson.loads(reply.body)) for reply in self._ask("/traces", "format=chrome")
        ]
        return _dump(join_traces(sorted([(self._siblings.number, drawn), *others], key=lambda one: one[0])))

    def show(self, request_id: str, *, is_drawn: bool) -> bytes:
        """Return the newest run of a request, as a `TraceDetail` or a `ChromeTrace`.

        Raises:
            ServiceError: 404 `trace_not_found`.
        """
        run = self._recent.find(request_id, self._client)
        if run is not None:
            return self._show(run, is_drawn=is_drawn)
        for reply in self._ask(f"/traces/{request_id}", "format=chrome" if is_drawn else ""):
            return reply.body
        message = f"no traced run of a request {request_id[:80]!r} is kept; GET /traces lists those that are"
        raise ServiceError(404, "trace_not_found", message, {"request_id": request_id[:128]})

    def _show(self, run: RecentRun, *, is_drawn: bool) -> bytes:
        if is_drawn:
            return _dump(chrome_trace([run]))
        shadow = self._traffic.find_shadow_run(run.record.model, run.record.request_id)
        return _dump(describe(run, shadow, self._process))

    def _ask(self, path: str, query: str = "") -> list[Reply]:
        """Return the answers of the other processes that have one."""
        if self._siblings is None:
            return []
        headers = () if self._client is None else ((CLIENT_HEADER, self._client.hex()),)
        replies = self._siblings.ask_from_thread(Call("GET", path, query, headers))
        return [reply for reply in replies if reply.status == HTTPStatus.OK]


def _dump(content: object) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
