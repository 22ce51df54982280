"""`POST /compare`: a model's run beside another one, operator by operator."""

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
from service.services import find_model, services_of

router = APIRouter(tags=["models"])


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
    loaded = find_model(request, model, version)
    if loaded.steps:
        names = ", ".join(step.model.name for step in loaded.steps)
        message = f"model {loaded.name!r} is a pipeline; compare the models of its steps: {names}"
        raise ServiceError(422, "invalid_parameter", message, {"parameter": "model", "expected": names})
    settings = services.settings
    body = await read_body(request, settings.limits, settings.timeout, services.lifecycle)
    content_type = request.headers.get("content-type")
    asked = (with_version, with_backend, with_precision)

    def respond() -> bytes:
        # it takes a while to import, and hardly any server needs it
        from service.inspection.comparison import Compared, compare  # noqa: PLC0415

        inputs, reference = read_comparison(body, content_type, loaded, settings.limits)
        if sum(one is not None for one in asked) + bool(reference) != 1:
            raise _unclear()
        variant = None
        if with_version is not None:
            other = services.repository.find(loaded.name, with_version)
            variant = Variant(f"{other.name}, version {other.version}", other.graph)
        elif not reference:
            variant = build_variant(loaded, settings, backend=with_backend, precision=with_precision)
        compared = Compared(loaded, inputs, variant, reference, tolerance)
        try:
            return orjson.dumps(compare(compared, StopSignal(monotonic() + settings.timeout)))
        except RunStoppedError as error:
            raise timed_out(settings.timeout) from error

    content = await services.comparisons.run(context.client, respond, settings.timeout)
    return Response(content, media_type="application/json")


def _unclear() -> ServiceError:
    """Return the error of a request that says nothing to compare with, or more than one thing."""
    names = "with_version, with_backend, with_precision or a file `reference` in a form"
    message = f"compare with one thing at a time: {names}"
    return ServiceError(422, "invalid_parameter", message, {"parameter": "with_version", "expected": names})
