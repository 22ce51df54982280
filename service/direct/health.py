"""Probes for whatever supervises the process; `routes/health.py` and its namesake in `v2` describe them for OpenAPI."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from service.services import services_of


async def show_alive(request: Request) -> Response:
    """Report that the process is alive."""
    del request
    return JSONResponse({"status": "alive"})


async def show_ready(request: Request) -> Response:
    """Report whether requests are accepted: models are loaded and the server is not shutting down."""
    services_of(request).check_ready()
    return JSONResponse({"status": "ready"})


async def show_v2_live(request: Request) -> Response:
    """Report that the process is alive."""
    del request
    return JSONResponse({"live": True})


async def show_v2_ready(request: Request) -> Response:
    """Report whether requests are accepted."""
    services_of(request).check_ready()
    return JSONResponse({"ready": True})
