"""The interfaces of the server, in one table: their paths, how an inference request is opened, how errors are worded.

Routes, access control, spans and error handlers read it. A path belongs to the first surface whose prefix it has.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request

from service.config.limits import Limits
from service.errors import ServiceError
from service.infer.head import InferHead
from service.infer.predict import PredictHead
from service.repository.loaded_model import LoadedModel
from service.scheduling.call import SurfaceName
from service.scheduling.inference_head import InferenceHead
from service.v2.errors import as_v2
from service.v2.head import V2Head

OpenHead = Callable[[Request, LoadedModel, str, Limits], InferenceHead]
"""(request, model, request id, limits) -> what the request's head asks for; raises ServiceError."""

ModelReference = tuple[str | None, str | None]
"""Name and version of a model as a request gives them; None for what it leaves out."""

READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""


@dataclass(frozen=True, slots=True)
class Surface:
    """One of the interfaces that clients use.

    Attributes:
        name: its name, in statistics and traces.
        prefix: what its paths begin with, without a slash at the end; empty for all paths.
        inference_paths: templates of the paths that `POST` runs a model at.
        health_paths: what orchestrators poll; needs no key, is answered while the server drains.
        metrics_paths: what monitoring polls; is answered while the server drains.
        docs_paths: the API's description.
        admin_paths: paths where a method that is not for reading changes the server; None where there are none.
        model_reference: returns which model an inference request names.
        open_head: reads the head of an inference request.
        word_error: returns an error in the form that clients of the surface expect.
    """

    name: SurfaceName
    prefix: str
    inference_paths: tuple[str, ...]
    health_paths: frozenset[str]
    metrics_paths: frozenset[str]
    docs_paths: frozenset[str]
    admin_paths: re.Pattern[str] | None
    model_reference: Callable[[Request], ModelReference]
    open_head: OpenHead
    word_error: Callable[[ServiceError], ServiceError]

    def owns(self, path: str) -> bool:
        """Tell whether a path lies at or below the surface's prefix."""
        return path == self.prefix or path.startswith(f"{self.prefix}/")

    def is_admin_call(self, method: str, path: str) -> bool:
        """Tell whether a request changes the server: loads a model, unloads one, changes trace or log settings."""
        if method in READING_METHODS or self.admin_paths is None:
            return False
        return self.admin_paths.fullmatch(path) is not None


def _model_in_query(request: Request) -> ModelReference:
    return request.query_params.get("model"), request.query_params.get("version")


def _model_in_path(request: Request) -> ModelReference:
    parameters = request.scope["path_params"]
    return parameters["name"], parameters.get("version")


def _unchanged(error: ServiceError) -> ServiceError:
    return error


V2 = Surface(
    name=SurfaceName.V2,
    prefix="/v2",
    inference_paths=("/v2/models/{name}/infer", "/v2/models/{name}/versions/{version}/infer"),
    health_paths=frozenset({"/v2/health/live", "/v2/health/ready"}),
    metrics_paths=frozenset(),
    docs_paths=frozenset(),
    admin_paths=re.compile(
        r"/v2/repository/models/.*/(load|unload)/?|/v2(/.*)?/(trace/setting|logging)/?", re.DOTALL
    ),
    model_reference=_model_in_path,
    open_head=V2Head,
    word_error=as_v2,
)

INFER = Surface(
    name=SurfaceName.INFER,
    prefix="",
    inference_paths=("/infer",),
    health_paths=frozenset({"/livez", "/readyz"}),
    metrics_paths=frozenset({"/metrics"}),
    docs_paths=frozenset({"/docs", "/openapi.json"}),
    admin_paths=None,
    model_reference=_model_in_query,
    open_head=InferHead,
    word_error=_unchanged,
)

V1 = Surface(
    name=SurfaceName.V1,
    prefix="/v1/models",
    inference_paths=("/v1/models/{name}:predict", "/v1/models/{name}/versions/{version}:predict"),
    health_paths=frozenset(),
    metrics_paths=frozenset(),
    docs_paths=frozenset(),
    admin_paths=None,
    model_reference=_model_in_path,
    open_head=PredictHead,
    word_error=_unchanged,
)

SURFACES = (V2, V1, INFER)

HEALTH_PATHS = frozenset().union(*(surface.health_paths for surface in SURFACES))
METRICS_PATHS = frozenset().union(*(surface.metrics_paths for surface in SURFACES))
DOCS_PATHS = frozenset().union(*(surface.docs_paths for surface in SURFACES))
_RUN_ENDS = ("/infer", ":predict", "/embeddings")
"""What the paths end with that run a model."""
POLLED_PATHS = HEALTH_PATHS | METRICS_PATHS
"""What machines ask every few seconds; it is answered while the server drains."""


def is_console_path(path: str) -> bool:
    """Tell whether a path is that of the console's page or of a file of it, which hold nothing of a server."""
    return path == "/console" or path.startswith("/console/")


def is_urgent(method: str, path: str) -> bool:
    """Tell whether a request is begun as soon as it has come: it runs a model, or asks whether the server lives."""
    return path.endswith(_RUN_ENDS) if method == "POST" else path in HEALTH_PATHS


def surface_of(path: str) -> Surface:
    """Return the surface that a path belongs to."""
    return next((surface for surface in SURFACES if surface.owns(path)), INFER)
