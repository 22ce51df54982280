"""Puts the application together, and nothing else."""

import logging

from fastapi import FastAPI

from service.api import ROUTERS
from service.config.extras import needs_extra
from service.config.settings import Settings
from service.description.openapi import DESCRIPTION, install_openapi
from service.http.access import Access, AccessMiddleware
from service.http.body import BodyBudget
from service.http.cors import CorsMiddleware
from service.http.error_handlers import install_error_handlers
from service.http.guard import GuardMiddleware, OriginPolicy
from service.http.paths import POLLED_PATHS
from service.http.request_middleware import HeadMiddleware, RequestMiddleware
from service.inspection.divergence import find_divergence
from service.lifecycle import Lifecycle
from service.lifespan import lifespan
from service.processes.slot import Slot
from service.repository.load_progress import LoadProgress
from service.repository.preloader import Preloader
from service.scheduling.scheduler import Scheduler
from service.services import Listener, Services
from service.stores.source import open_source
from service.telemetry.load_report import LoadReport
from service.telemetry.telemetry import Telemetry
from service.traffic.shadows import Shadows
from service.traffic.traffic import Traffic
from service.version import kuiper_version

_logger = logging.getLogger(__name__)


def create_app(settings: Settings, preloader: Preloader | None = None, slot: Slot | None = None) -> FastAPI:
    """Return the application; its models are loaded when it starts.

    Args:
        settings: all that can be set.
        preloader: the load of its models, if that has begun already.
        slot: what it has inherited as one of several processes; None where there is one.

    Raises:
        SettingsError: keys are malformed or cannot be read; spans cannot be sent as asked, or gRPC not be served.
    """
    telemetry = Telemetry(settings, None if slot is None else slot.number)
    scheduler = Scheduler(settings, telemetry.observers)
    progress = LoadProgress(LoadReport().show) if preloader is None else preloader.progress
    source = open_source(settings) if preloader is None or preloader.source is None else preloader.source
    services = Services(
        settings,
        Lifecycle(),
        scheduler,
        telemetry,
        Traffic(Shadows(scheduler, settings.worker_count, find_divergence)),
        progress=progress,
        preloader=preloader,
        source=source,
    )
    if slot is not None:
        services.process = slot.number
    access, budget = Access(settings), BodyBudget(settings.max_buffered_bytes)
    origins = OriginPolicy(settings)
    app = FastAPI(
        title="Kuiper Serve",
        description=DESCRIPTION,
        version=kuiper_version(),
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        telemetry=telemetry.of_requests(POLLED_PATHS),
    )
    app.state.services = services
    for router in ROUTERS:
        app.router.routes.extend(router.routes)  # `include_router` matches each path twice
    install_openapi(app, access, origins)
    install_error_handlers(app)
    _add_middleware(app, services, access, origins, budget)
    if settings.grpc_port is not None:
        services.listeners += _make_grpc(services, access, budget, slot)
    return app


def _make_grpc(services: Services, access: Access, budget: BodyBudget, slot: Slot | None) -> list[Listener]:
    """Return the server of gRPC: nothing where several processes were started without a port for it.

    Raises:
        SettingsError: gRPC is not installed, or cannot use the certificate.
    """
    with needs_extra("grpc_port:", "grpc", "grpc", "google"):
        from service.grpc.front import Front  # noqa: PLC0415  # off means not even imported
        from service.grpc.server import GrpcServer  # noqa: PLC0415
    if slot is not None and slot.grpc_port is None:
        _logger.error("grpc_port: is read when the first process starts; gRPC is served from then on")
        return []
    return [GrpcServer(Front(services, access, budget), slot)]


def _add_middleware(
    app: FastAPI,
    services: Services,
    access: Access,
    origins: OriginPolicy,
    budget: BodyBudget,
) -> None:
    """Put the middleware around all routes, innermost first."""
    settings = services.settings
    app.add_middleware(HeadMiddleware)
    if access.is_limited:
        app.add_middleware(AccessMiddleware, access=access)
    app.add_middleware(GuardMiddleware, lifecycle=services.lifecycle, origins=origins)
    if settings.cors_origins:
        app.add_middleware(CorsMiddleware, origins=settings.cors_origins)
    app.add_middleware(
        RequestMiddleware,
        lifecycle=services.lifecycle,
        request_log=services.telemetry.request_log,
        budget=budget,
    )
