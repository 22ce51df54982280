"""FastAPI's application is made when it is first needed, once, beside the event loop."""

import asyncio
import threading

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from service.http.application import Application
from service.http.direct_route import DirectRoute

pytestmark = pytest.mark.anyio


async def show_direct(request: Request) -> Response:
    del request
    return PlainTextResponse("direct")


class Making:
    """Makes FastAPI's application once it may."""

    def __init__(self, faults: int = 0) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.threads: list[threading.Thread] = []
        self._faults = faults

    def __call__(self) -> FastAPI:
        self.threads.append(threading.current_thread())
        self.begun.set()
        assert self.may_end.wait(20)
        if len(self.threads) <= self._faults:
            raise ImportError("no")
        api = FastAPI()
        api.add_api_route("/made", lambda: "made")
        return api


def client_of(make: Making) -> AsyncClient:
    app = Application([DirectRoute("/direct", show_direct)], make)
    return AsyncClient(transport=ASGITransport(app), base_url="http://test")


async def test_requests_that_come_meanwhile_wait_and_direct_ones_do_not() -> None:
    make = Making()
    async with client_of(make) as client:
        assert (await client.get("/direct")).text == "direct"
        assert make.threads == []
        waiting = [asyncio.create_task(client.get("/made")) for _ in range(3)]
        await asyncio.to_thread(make.begun.wait, 20)
        assert (await client.get("/direct")).text == "direct"
        assert not any(task.done() for task in waiting)
        make.may_end.set()
        assert [(await task).json() for task in waiting] == ["made"] * 3
        assert (await client.get("/made")).json() == "made"
    assert len(make.threads) == 1
    assert make.threads[0] is not threading.current_thread()


async def test_what_could_not_be_made_is_tried_again() -> None:
    make = Making(faults=1)
    make.may_end.set()
    async with client_of(make) as client:
        with pytest.raises(ImportError):
            await client.get("/made")
        assert (await client.get("/made")).json() == "made"


async def test_other_methods_than_a_direct_route_has_are_passed_on() -> None:
    make = Making()
    make.may_end.set()
    async with client_of(make) as client:
        assert (await client.post("/direct")).status_code == 404
    assert len(make.threads) == 1
