"""The parts of a running server, as routes and middleware reach them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Protocol

from starlette.applications import Starlette
from starlette.requests import Request

from service.config.limits import Limits
from service.config.machine import this_machine
from service.config.settings import Settings
from service.context import context_of
from service.errors import ServiceError, shutting_down
from service.fairness import ErrorThrottle, FairExecutor, SharedResults
from service.graph.document_cache import DocumentCache
from service.lifecycle import Lifecycle, Phase
from service.repository.load_progress import LoadProgress, LoadState
from service.repository.loaded_model import LoadedModel
from service.repository.loading_threads import LoadingThreads
from service.repository.model_source import ModelSource
from service.repository.poller import Poller
from service.repository.preloader import Preloader
from service.repository.quantization_files import QuantizationFiles
from service.repository.repository import ModelRepository
from service.scheduling.scheduler import Scheduler
from service.telemetry.metrics import Snapshot
from service.telemetry.telemetry import Telemetry
from service.traffic.traffic import Traffic

_SPARE_THREADS = 4
"""Threads beyond one per core, so that a model can be unloaded while others are loaded."""


class Listener(Protocol):
    """The server of another protocol than HTTP while the application runs."""

    async def start(self) -> None:
        """Listen.

        Raises:
            ListenError: the address cannot be listened on.
        """

    async def stop(self) -> None:
        """Serve no more."""

    @property
    def has_clients(self) -> bool:
        """Whether a process that is replaced has to wait for clients."""

    def leave(self) -> None:
        """Leave what is new to the process that has taken this one's place."""


@dataclass(slots=True)
class Services:
    """The parts of a running server.

    Attributes:
        settings: its settings.
        lifecycle: the phase that it is in.
        scheduler: its queues and workers.
        telemetry: its statistics, metrics, traces and spans.
        traffic: how the versions of its models share requests.
        loaded: its models; None until they are loaded.
        progress: how far the loading of its models has come.
        preloader: the load of its models, where that began before the application was made.
        source: what brings its models; None for the folder that the settings name.
        poller: looks for changes of its models, where the settings ask for that and they are loaded.
        loading_threads: the threads that models are loaded on, at the start and later.
        inspections: the thread on which what a model consists of is looked at, for one client after the other.
        unpacking: the thread on which bodies are decompressed or parsed that are not in a queue yet, for one client
            after the other.
        comparisons: the thread on which models are run beside others, for one client after the other.
        documents: drawings of graphs and the like that were asked for.
        quantizations: files of `kuiper quantize` that were asked for.
        began: when the server began, on the clock of `time.monotonic`.
        shared: makes responses of routes that compute, one for all who wait for it.
        error_throttle: delays 503 responses to clients that retry at once.
        process: number of this process among several; None where there is only this one.
        opens_at_once: whether the application starts before its models are loaded.
        listeners: servers of other protocols.
        limits: upper bounds on the size of a request.
    """

    settings: Settings
    lifecycle: Lifecycle
    scheduler: Scheduler
    telemetry: Telemetry
    traffic: Traffic
    loaded: ModelRepository | None = None
    progress: LoadProgress = field(default_factory=LoadProgress)
    preloader: Preloader | None = None
    source: ModelSource | None = None
    poller: Poller | None = None
    loading_threads: LoadingThreads = field(
        default_factory=lambda: LoadingThreads(this_machine().cpus + _SPARE_THREADS)
    )
    inspections: FairExecutor = field(default_factory=lambda: FairExecutor("inspections"))
    unpacking: FairExecutor = field(default_factory=lambda: FairExecutor("unpacking"))
    comparisons: FairExecutor = field(default_factory=lambda: FairExecutor("comparisons"))
    documents: DocumentCache = field(default_factory=DocumentCache)
    quantizations: QuantizationFiles = field(default_factory=QuantizationFiles)
    began: float = field(default_factory=monotonic)
    shared: SharedResults = field(default_factory=SharedResults)
    error_throttle: ErrorThrottle = field(default_factory=ErrorThrottle)
    process: int | None = None
    opens_at_once: bool = False
    listeners: list[Listener] = field(default_factory=list)
    limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        """Take the limits from the settings."""
        self.limits = self.settings.limits

    @property
    def repository(self) -> ModelRepository:
        """The models.

        Raises:
            ServiceError: 503 `not_ready` before they are loaded.
        """
        if self.loaded is None:
            raise _not_ready(self.shown_progress)
        return self.loaded

    def choose_model(
        self, name: str | None, version: str | None, headers: Mapping[bytes, bytes]
    ) -> LoadedModel:
        """Choose the model that serves a request to run one; where it names no version, the traffic chooses.

        Args:
            name: the model; None for the only one.
            version: its version; None for any.
            headers: those of the request, or what stands for them; names are in lower case.

        Raises:
            ServiceError: 503 `not_ready`, or as `ModelRepository.find`.
        """
        return self.traffic.find(self.repository.entry(name), version, headers)

    def snapshot(self) -> Snapshot:
        """Return the server at this moment, as far as metrics show it; may be called on any thread.

        Statistics of models that are no longer loaded are dropped, so that their series end.
        """
        entries = self.loaded.entries if self.loaded is not None else ()
        snapshot = Snapshot(
            list(self.loaded or ()),
            self.scheduler,
            self.settings,
            self.traffic.of_all(entries),
            self.poller,
        )
        self.telemetry.statistics.keep(snapshot.identities)
        return snapshot

    def check_ready(self) -> None:
        """Check that the server is ready for requests, and will be for a while.

        Raises:
            ServiceError: 503 `not_ready` before the models are loaded, 503 `shutting_down` once the server shuts down.
        """
        if self.lifecycle.phase in (Phase.LEAVING, Phase.DRAINING):
            raise shutting_down()
        if self.lifecycle.phase is Phase.STARTING:
            raise _not_ready(self.shown_progress)

    def check_change(self) -> None:
        """Check whether a call may change the server, which one of several processes would do alone.

        Raises:
            ServiceError: 403 `needs_one_process`.
        """
        if self.process is not None:
            message = (
                "with several processes, models, trace and log settings do not change by API; change the model "
                "folder with --model-control poll, or change the settings and send SIGHUP to the supervisor process"
            )
            raise ServiceError(403, "needs_one_process", message)

    @property
    def shown_progress(self) -> LoadState:
        """How far the loading has come, as anybody may see it: without names where a key is needed to see models."""
        state, settings = self.progress.state, self.settings
        return (
            state
            if settings.api_keys is None and settings.api_keys_file is None
            else replace(state, steps=())
        )

    def stop_loading(self) -> None:
        """Refuse all who wait for models, look for changes no more, and have loads end before their next steps."""
        if self.poller is not None:
            self.poller.stop()
        self.loading_threads.abort(shutting_down())
        self.progress.stop()


def services_of(target: Request | Starlette) -> Services:
    """Return the services of an application, or of the one that got a request."""
    app = target.app if isinstance(target, Request) else target
    services = app.state.services
    if not isinstance(services, Services):
        raise TypeError(f"app.state.services is a {type(services).__name__}")
    return services


def find_model(request: Request, name: str | None, version: str | None = None) -> LoadedModel:
    """Return the model that a request names, which its log line names as well.

    Args:
        request: the request.
        name: the model; None for the only one.
        version: its version; None for the default one.

    Raises:
        ServiceError: 404 if there is no such model or version, 503 if it is broken or the models are not loaded yet.
    """
    model = services_of(request).repository.find(name, version)
    context_of(request).model = model.name
    return model


def _not_ready(state: LoadState) -> ServiceError:
    """Return the error of a request that comes before the models are loaded.

    Args:
        state: load progress.
    """
    details = {"loaded": state.loaded, "models": state.models, "steps": list(state.steps)}
    message = f"the models are not loaded yet ({str(state) or 'the folder of models is being read'})"
    return ServiceError(503, "not_ready", message, details, {"Retry-After": "1"})
