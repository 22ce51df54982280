"""`POST /compare`: a model's run beside another one, operator by operator."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Annotated, Literal

import orjson
from fastapi import APIRouter, Query, Request, Response

from engine import RunStoppedError, StopSignal
from service.context import context_of
from service.description.openapi import BODY_CONTENT, MODEL_DESCRIPTION, VERSION_DESCRIPTION, error_responses
from service.errors import ServiceError, timed_out
from service.http.body import read_body
from service.inspection.comparison_request import read_comparison
from service.inspection.comparison_schemas import ComparisonView
from service.inspection.variant import Variant, build_variant
from service.repository.loaded_model import LoadedModel
from service.services import Services, services_of

router = APIRouter(tags=["models"])


@dataclass(frozen=True, slots=True)
class _Question:
    """A request to compare, its body included.

    Attributes:
        services: the parts of the server.
        model: the model that it names.
        body: its body.
        content_type: its `Content-Type`.
        version: version to compare with.
        backend: backend to compare with.
        precision: precision to compare with.
        tolerance: largest difference that is ignored.
    """

    services: Services
    model: LoadedModel
    body: bytes
    content_type: str | None
    version: str | None
    backend: str | None
    precision: str | None
    tolerance: float

    def respond(self) -> bytes:
        """Decode the body, run both sides and return the response as JSON."""
        # it takes a while to import, and hardly any server needs it
        from service.inspection.comparison import Compared, compare  # noqa: PLC0415

        settings = self.services.settings
        given = read_comparison(self.body, self.content_type, self.model, settings.limits)
        variant = self._variant(given.reference)
        asked = Compared(self.model, given.inputs, variant, given.reference, self.tolerance)
        try:
            return orjson.dumps(compare(asked, StopSignal(monotonic() + settings.timeout)))
        except RunStoppedError as error:
            raise timed_out(settings.timeout) from error

    def _variant(self, reference: Mapping[str, object]) -> Variant | None:
        """Return what to compare with; None for the reference.

        Raises:
            ServiceError: 422 `invalid_parameter`: there is nothing to compare with, or more than one thing.
        """
        asked = (self.version, self.backend, self.precision)
        if sum(one is not None for one in asked) + bool(reference) != 1:
            names = "with_version, with_backend, with_precision or a file `reference` in a form"
            raise ServiceError(
                422,
                "invalid_parameter",
                f"compare with one thing at a time: {names}",
                {"parameter": "with_version", "expected": names},
            )
        if self.version is not None:
            other = self.services.repository.find(self.model.name, self.version)
            return Variant(f"{other.name}, version {other.version}", other.graph)
        if reference:
            return None
        return build_variant(
            self.model, self.services.settings, backend=self.backend, precision=self.precision
        )


@router.post(
    "/compare",
    response_class=Response,
    responses={
        200: {"model": ComparisonView},
        **error_responses(400, 404, 408, 409, 413, 415, 422, 500, 503, 504),
    },
    openapi_extra={"requestBody": {"required": True, "content": BODY_CONTENT}},
)
async def compare_runs(
    request: Request,
    model: Annotated[str | None, Query(description=MODEL_DESCRIPTION)] = None,
    version: Annotated[str | None, Query(description=VERSION_DESCRIPTION)] = None,
    with_version: Annotated[str | None, Query(description="compare with this version of the model")] = None,
    with_backend: Annotated[
        Literal["native", "numpy"] | None, Query(description="compare with the same model on this backend")
    ] = None,
    with_precision: Annotated[
        Literal["f32", "bf16", "int8", "int4"] | None,
        Query(description="compare with the same model in this precision"),
    ] = None,
    tolerance: Annotated[
        float,
        Query(
            ge=0,
            le=1,
            description="difference that is ignored, relative to the value and to the tensor's largest",
        ),
    ] = 1e-3,
) -> Response:
    """Compare two runs operator by operator: a model with another version, backend, precision, or with tensors.

    The body is an input, as `/infer` takes it. Where it is a form, a file called `reference` may hold an npz of arrays
    by names of operands or operators to compare with.
    """
    services, context = services_of(request), context_of(request)
    loaded = services.repository.find(model, version)
    context.model = loaded.name
    if loaded.steps:
        names = ", ".join(step.model.name for step in loaded.steps)
        message = f"model {loaded.name!r} is a pipeline; compare the models of its steps: {names}"
        raise ServiceError(422, "invalid_parameter", message, {"parameter": "model", "expected": names})
    settings = services.settings
    body = await read_body(request, settings.limits, settings.timeout, services.lifecycle)
    content_type = request.headers.get("content-type")
    question = _Question(
        services, loaded, body, content_type, with_version, with_backend, with_precision, tolerance
    )
    content = await services.comparisons.run(context.client, question.respond, settings.timeout)
    return Response(content, media_type="application/json")
