"""What happens before the first request and after the last: models are loaded, workers start, and all of it ends."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette

from engine import code_folder_in_use
from engine.compiler.memory.release import release_file_pages
from service.decoding import DECODERS
from service.errors import ListenError, ServiceError
from service.http.route_threads import limit_route_threads
from service.lifecycle import Phase
from service.memory_trimmer import MemoryTrimmer
from service.repository.load_progress import LoadStoppedError
from service.repository.poller import Poller
from service.repository.repository import RepositoryError, load_repository
from service.services import Services, services_of

_logger = logging.getLogger(__name__)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Load the models and start the workers; at the end, stop them.

    The context is entered once models are loaded, as the servers of other people's ASGI applications expect, unless
    `Services.opens_at_once` is set: then it is entered at once, and the models are loaded meanwhile.

    Raises:
        RepositoryError: a model is broken, or there is none; only where it is waited for.
        ListenError: gRPC cannot listen where it is to.
    """
    limit_route_threads()
    services = services_of(app)
    trimmer = MemoryTrimmer()
    loading = asyncio.create_task(_load(services, trimmer))
    try:
        if not services.opens_at_once:
            await loading
        await _listen(services)
        yield
    finally:
        services.lifecycle.drain()
        services.stop_loading()
        for listener in services.listeners:
            await listener.stop()
        with suppress(Exception):  # `Lifecycle.failure` has it
            await loading
        services.traffic.close()
        services.scheduler.close()
        if services.process is not None:
            services.telemetry.metrics.publish(services.snapshot())
        DECODERS.close()
        trimmer.close()
        services.telemetry.close()
        if services.source is not None:
            services.source.close()


async def _listen(services: Services) -> None:
    """Serve the other protocols as well.

    Raises:
        ListenError: an address cannot be listened on; `Lifecycle.failure` holds it as well.
    """
    try:
        for listener in services.listeners:
            await listener.start()
    except ListenError as error:
        services.lifecycle.failure = str(error)
        raise


async def _load(services: Services, trimmer: MemoryTrimmer) -> None:
    """Load the models, then accept requests.

    Raises:
        RepositoryError: a model is broken, or there is none; `Lifecycle.failure` holds it as well.
    """
    settings, preloader = services.settings, services.preloader
    try:
        services.loaded = await services.loading_threads.run(
            lambda: load_repository(
                settings,
                lambda _: trimmer.collect(),
                services.progress,
                None if preloader is None else preloader.entries,
                services.source,
            )
        )
    except (LoadStoppedError, ServiceError):
        return  # the server shuts down
    except Exception as error:
        if not isinstance(error, RepositoryError):
            _logger.exception("models cannot be loaded")
        services.lifecycle.failure = str(error) or type(error).__name__
        raise
    if preloader is not None:
        preloader.release()
    if services.process is not None and code_folder_in_use() is None and settings.backend != "numpy":
        _logger.warning("compiled code and weights cannot be kept (KUIPER_CACHE): each process has its own")
    if services.lifecycle.phase is Phase.STARTING:
        services.scheduler.start()
        trimmer.start()
        _start_poller(services)
        services.lifecycle.started()
        with suppress(ServiceError):  # the server shuts down
            await services.loading_threads.run(release_file_pages)


def _start_poller(services: Services) -> None:
    """Look for changes of the models from now on, where the settings ask for that."""
    settings = services.settings
    if settings.model_control == "poll" and services.source is not None:
        step = services.progress.check
        services.poller = Poller(services.source, services.repository, settings.poll_seconds, step)
        services.poller.start()
