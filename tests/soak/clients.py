"""Kinds of clients; each is called again and again until the round is over."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import orjson
import tritonclient.http.aio as triton
from tritonclient.utils import InferenceServerException

from service.scheduling.job import CallStatus
from tests.soak.case import LoadCase
from tests.soak.load import Load
from tests.soak.models import VECTOR_BATCHES
from tests.soak.wire import SoakConnection, SoakReply, SoakRequest

BURST = {"slow": 30, "digits": 90}
"""Requests at once; more than the model's queue takes."""
RELOADED = ("digits", "vector", "twin", "slow", "pair")


async def steady(load: Load) -> None:
    """Ask one after the other on one connection."""
    connection = await SoakConnection.open(load.url)
    try:
        for _ in range(load.chance.randrange(1, 50)):
            await load.ask(connection, load.pick(load.cases))
            if load.is_over or not connection.is_open:
                break
    finally:
        await connection.close()


async def hasty(load: Load) -> None:
    """Send several requests before the first is answered."""
    small = [*load.named("pair"), *load.named("vector"), *load.named("digits")]
    picked = [load.pick(small) for _ in range(load.chance.randrange(2, 6))]
    connection = await SoakConnection.open(load.url)
    try:
        replies = await connection.ask_all([case.request for case in picked])
    finally:
        await connection.close()
    for case, reply in zip(picked, replies, strict=False):
        load.counts.saw(case, reply)
    for case in picked[len(replies) :]:
        load.counts.left(case.model)


async def hurried(load: Load) -> None:
    """Ask with a short deadline."""
    await load.ask_once(load.pick(load.hurried))


async def guest(load: Load) -> None:
    """Ask a model that comes and goes."""
    await load.ask_once(load.pick(load.guests))


async def visitor(load: Load) -> None:
    """Look at everything but inference."""
    await load.ask_once(load.pick(load.visits))
    await asyncio.sleep(0.02)


async def leaver(load: Load) -> None:
    """Leave before the response has come."""
    case = load.pick([case for case in load.cases if case.request.body])
    head, body = case.request.head(), case.request.wire_body()
    connection = await SoakConnection.open(load.url)
    match load.chance.randrange(5):
        case 0:  # in the head: no request has begun
            await connection.send(head[: load.chance.randrange(1, len(head) - 1)])
        case 1:  # in the body
            load.counts.left(case.model)
            await connection.send(head + body[: load.chance.randrange(len(body))])
            await asyncio.sleep(load.chance.random() * 0.02)
        case 2 | 3:  # while it waits or runs
            load.counts.left(case.model)
            await connection.send(head + body)
            await asyncio.sleep(load.chance.random() * 0.05)
        case _:  # in the response
            load.counts.left(case.model)
            await connection.send(head + body)
            await connection.receive_some()
    if load.chance.random() < 0.5:
        connection.abort()
    else:
        await connection.close()
    await asyncio.sleep(0.02)


async def garbler(load: Load) -> None:
    """Send what is no HTTP; nothing counts it."""
    connection = await SoakConnection.open(load.url)
    await connection.send(b"\x16\x03\x01 this is no request\r\n\r\n")
    reply = await connection.receive()
    if reply.status != 400:
        load.counts.blame(f"no HTTP: status {reply.status}")
    await connection.close()
    await asyncio.sleep(0.1)


async def burster(load: Load) -> None:
    """Ask much more at once than is taken, now and then."""
    await asyncio.sleep(load.chance.random())
    model = load.chance.choice(list(BURST))
    cases = load.named(model)
    await asyncio.gather(*(load.ask_once(load.pick(cases)) for _ in range(BURST[model])))


async def reloader(load: Load) -> None:
    """Have a model loaded again, with other batches now and then."""
    await reload(load, load.chance.choice(RELOADED), load.chance.choice(VECTOR_BATCHES))
    await asyncio.sleep(0.3)


async def keeper(load: Load) -> None:
    """Have a model unloaded and loaded."""
    await change(load, "guest", "unload", {"unload_dependents": False})
    await asyncio.sleep(0.1)
    await change(load, "guest", "load")
    await asyncio.sleep(0.4)


async def reload(load: Load, name: str, largest: int) -> None:
    """Have a model loaded again; `vector` with batches of at most `largest` rows."""
    config = orjson.dumps({"max_batch_size": largest}).decode()
    parameters = {"config": config} if name == "vector" else None
    await change(load, name, "load", parameters)


async def change(load: Load, model: str, verb: str, parameters: Mapping[str, Any] | None = None) -> None:
    """Have a model loaded or unloaded."""
    headers = {"Authorization": f"Bearer {load.admin_key}"}
    body = orjson.dumps({"parameters": parameters} if parameters else {})
    request = SoakRequest("POST", f"/v2/repository/models/{model}/{verb}", headers, body)
    await load.ask_once(LoadCase(f"{verb} {model}", request))


async def browser(load: Load) -> None:
    """Ask by httpx."""
    cases = load.named("digits")
    async with httpx.AsyncClient(base_url=load.url, timeout=None) as client:
        for _ in range(20):
            case = load.pick(cases)
            request = case.request
            response = await client.request(
                request.method, request.target, headers=dict(request.headers), content=request.body
            )
            headers = dict(response.headers)
            load.counts.saw(case, SoakReply(response.status_code, headers, response.content))
            if load.is_over:
                break


async def protocol_client(load: Load) -> None:
    """Ask by the protocol's own client."""
    async with triton.InferenceServerClient(urlsplit(load.url).netloc) as client:
        for _ in range(20):
            await _infer(load, client, load.chance.random() < 0.5)
            if load.is_over:
                break


async def _infer(load: Load, client: Any, binary: bool) -> None:
    rows = np.array([[load.chance.uniform(-1, 1) for _ in range(3)]], np.float32)
    tensor = triton.InferInput("0", [1, 3], "FP32")
    tensor.set_data_from_numpy(rows, binary_data=binary)
    wanted = triton.InferRequestedOutput("1", binary_data=binary)
    coding = load.chance.choice([None, "gzip", "deflate"])
    try:
        response = await client.infer(
            "vector", [tensor], outputs=[wanted], request_compression_algorithm=coding
        )
    except InferenceServerException as error:
        status = int(error.status() or 0)
        load.counts.count(("vector", "1"), (CallStatus.REJECTED,), status)
        if status != 503:
            load.counts.blame(f"tritonclient: {error}")
        return
    load.counts.count(("vector", "1"), (CallStatus.SUCCESS,), 200)
    if not np.allclose(response.as_numpy("1"), np.maximum(rows, 0), rtol=0, atol=1e-5):
        load.counts.blame("tritonclient: differs")


CLIENTS = (*[steady] * 6, hasty, hurried, hurried, guest, visitor, leaver, leaver, garbler, burster)
CLIENTS += (reloader, keeper, browser, protocol_client)
"""Who asks at the same time."""
