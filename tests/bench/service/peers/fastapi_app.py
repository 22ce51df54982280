"""A plain FastAPI application with a pool of threads."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
import orjson
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool

from tests.bench.service.peers.session import PORT, WORKERS, Array, Session


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Have as many threads as others have workers."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = WORKERS
    yield


app = FastAPI(lifespan=lifespan)
session = Session()


@app.get("/ready")
async def ready() -> dict[str, str]:
    """Return that it is live."""
    return {}


@app.post("/json")
async def infer_json(request: Request) -> Response:
    """Numbers in, numbers out."""
    body = await request.body()
    return Response(await run_in_threadpool(from_json, body), media_type="application/json")


@app.post("/binary")
async def infer_binary(request: Request) -> Response:
    """Bytes in, bytes out."""
    body = await request.body()
    return Response(await run_in_threadpool(from_bytes, body), media_type="application/octet-stream")


@app.post("/image")
async def infer_image(request: Request) -> Response:
    """An encoded image in, numbers out."""
    body = await request.body()
    return Response(await run_in_threadpool(from_image, body), media_type="application/json")


def from_json(body: bytes) -> bytes:
    """Answer a list of numbers."""
    return as_json(session.run(session.from_numbers(orjson.loads(body)["data"])))


def from_bytes(body: bytes) -> bytes:
    """Answer the bytes of an input."""
    return session.run(session.from_bytes(body)).tobytes()


def from_image(body: bytes) -> bytes:
    """Answer an encoded image."""
    return as_json(session.run(session.from_image(body)))


def as_json(scores: Array) -> bytes:
    """Return scores as JSON."""
    return orjson.dumps({"data": scores}, option=orjson.OPT_SERIALIZE_NUMPY)


if __name__ == "__main__":
    uvicorn.run(app, port=PORT, access_log=False, log_level="warning")
