"""Puts the application together, and nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from service.config.settings import Settings
from service.description.openapi import DESCRIPTION, install_openapi
from service.http.access import Access, AccessMiddleware
from service.http.body_budget import BodyBudget
from service.http.cors import CorsMiddleware
from service.http.error_handlers import install_error_handlers
from service.http.guard import GuardMiddleware
from service.http.request_middleware import RequestMiddleware
from service.lifecycle import Lifecycle
from service.repository.repository import RepositoryError, load_repository
from service.routes import DESCRIBED, ROUTERS
from service.routes.inference import InferenceMiddleware, inference_routes
from service.scheduling.dispatcher import Dispatcher
from service.services import Services, services_of
from service.surfaces import POLLED_PATHS
from service.telemetry.telemetry import make_telemetry
from service.version import kuiper_version


def create_app(settings: Settings) -> FastAPI:
    """Return the application; its models are loaded when it starts.

    Args:
        settings: all that can be set.

    Raises:
        SettingsError: keys are malformed or cannot be read; spans cannot be sent as asked.
    """
    telemetry = make_telemetry(settings)
    services = Services(settings, Lifecycle(), Dispatcher(settings, telemetry.observers), telemetry)
    routes = inference_routes()
    app = FastAPI(
        title="Kuiper Serve",
        description=DESCRIPTION,
        version=kuiper_version(),
        routes=routes,
        lifespan=_lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
    )
    app.state.services = services
    access, budget = Access(settings), BodyBudget(settings.max_buffered_bytes)
    app.add_middleware(InferenceMiddleware, routes=routes)
    _add_middleware(app, services, access, budget)
    install_error_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    install_openapi(app, access, DESCRIBED)
    return app


def _add_middleware(app: FastAPI, services: Services, access: Access, budget: BodyBudget) -> None:
    """Put the middleware around the routes, innermost first."""
    settings = services.settings
    if access.is_limited:
        app.add_middleware(AccessMiddleware, access=access)
    app.add_middleware(GuardMiddleware, lifecycle=services.lifecycle)
    if settings.cors_origins:
        app.add_middleware(CorsMiddleware, origins=settings.cors_origins)
    app.add_middleware(
        RequestMiddleware,
        lifecycle=services.lifecycle,
        request_log=services.telemetry.http_request_log,
        budget=budget,
    )
    if services.telemetry.spans is not None:
        app.add_middleware(services.telemetry.spans.around, ignored_paths=POLLED_PATHS)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    services = services_of(app)
    try:
        services.loaded = load_repository(services.settings, services.dispatcher.retire)
    except RepositoryError as error:
        services.lifecycle.failure = str(error)
        raise
    services.dispatcher.start()
    services.lifecycle.started()
    try:
        yield
    finally:
        services.lifecycle.drain()
        services.dispatcher.close()
        services.telemetry.close()
