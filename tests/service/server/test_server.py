"""When the server stops listening. What clients see of it is in tests/service/server."""

import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import uvicorn

from service.app import create_app
from service.config.settings import Settings
from service.errors import ServiceError
from service.lifecycle import Lifecycle, Phase
from service.scheduling.scheduler import Scheduler
from service.server import server as module
from service.server.server import UNREAD_SECONDS, Server, run
from service.services import Services, services_of
from service.telemetry.telemetry import make_telemetry

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Recorder(Scheduler):
    def __init__(self) -> None:
        super().__init__(Settings())
        self.refused: list[ServiceError] = []

    def refuse_all(self, error: ServiceError) -> None:
        self.refused.append(error)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "monotonic", made)
    return made


@pytest.fixture
def request_in_progress() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def server(clock: Clock, request_in_progress: ExitStack) -> Server:
    lifecycle = Lifecycle()
    lifecycle.started()
    lifecycle.begin_request()
    request_in_progress.callback(lifecycle.end_request)
    # uvicorn's own logging configuration would outlive this test and hide its loggers from the tests that follow
    config = uvicorn.Config("none", log_config=None)
    settings = Settings(drain_seconds=30)
    services = Services(settings, lifecycle, Recorder(), make_telemetry(settings))
    return Server(config, services)


def refused(server: Server) -> list[ServiceError]:
    scheduler = server.services.scheduler
    assert isinstance(scheduler, Recorder)
    return scheduler.refused


async def test_server_goes_on_until_a_signal_comes(server: Server) -> None:
    assert not await server.on_tick(1)
    assert server.lifecycle.phase is Phase.READY


async def test_signal_fails_readiness_and_is_not_raised_again(server: Server) -> None:
    server.handle_exit(signal.SIGTERM, None)
    with pytest.raises(ServiceError, match="shutting down"):
        server.services.check_ready()
    assert server._captured_signals == []


async def test_requests_that_were_sent_before_the_signal_are_taken(server: Server, clock: Clock) -> None:
    server.handle_exit(signal.SIGTERM, None)
    phases = []
    for seconds in (0.0, UNREAD_SECONDS - 0.01, 0.01):
        clock.now += seconds
        assert not await server.on_tick(1)
        phases.append(server.lifecycle.phase)
    assert phases == [Phase.LEAVING, Phase.LEAVING, Phase.DRAINING]


async def test_accepted_requests_are_waited_for(
    server: Server, clock: Clock, request_in_progress: ExitStack
) -> None:
    server.handle_exit(signal.SIGTERM, None)
    assert not await server.on_tick(1)
    request_in_progress.close()
    clock.now += UNREAD_SECONDS
    assert await server.on_tick(2)
    assert refused(server) == []


async def test_accepted_requests_are_aborted_when_time_is_up(server: Server, clock: Clock) -> None:
    server.handle_exit(signal.SIGTERM, None)
    assert not await server.on_tick(1)
    clock.now += UNREAD_SECONDS
    assert not await server.on_tick(1)
    clock.now += 29.9
    assert not await server.on_tick(2)
    clock.now += 0.1
    assert await server.on_tick(3)
    assert [error.code for error in refused(server)] == ["shutting_down"]


def with_delay(server: Server) -> Server:
    server.services.settings = Settings(drain_delay_seconds=5, drain_seconds=30)
    return server


async def test_requests_are_taken_for_the_delay(server: Server, clock: Clock) -> None:
    with_delay(server).handle_exit(signal.SIGTERM, None)
    assert not await server.on_tick(1)
    clock.now += 4.9
    assert not await server.on_tick(2)
    phases = [server.lifecycle.phase]
    with pytest.raises(ServiceError, match="shutting down"):
        server.services.check_ready()
    clock.now += 0.1
    assert not await server.on_tick(3)
    phases.append(server.lifecycle.phase)
    assert phases == [Phase.LEAVING, Phase.DRAINING]
    clock.now += 29.9
    assert not await server.on_tick(4), "the drain begins when the delay is over"
    clock.now += 0.1
    assert await server.on_tick(5)


async def test_second_signal_ends_delay_and_drain(server: Server) -> None:
    with_delay(server).handle_exit(signal.SIGTERM, None)
    assert not await server.on_tick(1)
    server.handle_exit(signal.SIGTERM, None)
    assert await server.on_tick(2)
    assert len(refused(server)) == 1


async def test_server_that_is_not_ready_has_nobody_to_wait_for(server: Server) -> None:
    with_delay(server).lifecycle = server.services.lifecycle = Lifecycle()
    server.handle_exit(signal.SIGTERM, None)
    assert server.lifecycle.phase is Phase.DRAINING


async def test_second_signal_ends_the_wait(server: Server) -> None:
    server.handle_exit(signal.SIGTERM, None)
    assert not await server.on_tick(1)
    server.handle_exit(signal.SIGINT, None)
    assert await server.on_tick(2)
    assert len(refused(server)) == 1


@pytest.mark.parametrize(
    ("started", "ended", "code"), [(True, None, 0), (False, None, 3), (False, 1, 1), (False, "no", 3)]
)
def test_exit_code_shows_whether_the_server_started(
    monkeypatch: pytest.MonkeyPatch, started: bool, ended: int | str | None, code: int
) -> None:
    settings = Settings(host="127.0.0.2", port=0, drain_seconds=7)
    app = create_app(settings)

    def fake(server: Server, sockets: list[socket.socket]) -> None:
        assert server.services is services_of(app)
        assert [opened.getsockname()[0] for opened in sockets] == ["127.0.0.2"]
        server.started = started
        if ended is not None:
            raise SystemExit(ended)

    monkeypatch.setattr(Server, "run", fake)
    assert run(app, settings) == code
