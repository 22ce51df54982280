"""The body of a request to compare: an input, as `/infer` takes it, and in a form also arrays to compare with."""

from collections.abc import Mapping

from engine import Array
from service.codec import decode
from service.codec.formats import parse_media_type
from service.codec.multipart import parse_multipart
from service.codec.npz import read_npz
from service.config.limits import Limits
from service.errors import ServiceError
from service.repository.loaded_model import LoadedModel

REFERENCE = "reference"
"""Name of the part of a form that holds the npz file of arrays to compare with."""


def read_comparison(
    body: bytes, content_type: str | None, model: LoadedModel, limits: Limits
) -> tuple[Mapping[str, Array], Mapping[str, Array]]:
    """Return the inputs, by operands, and the arrays to compare with, by operands or operators; those may be none.

    Beside a reference, a form has one file more: the input, of any kind that may be a body by itself; what it is, its
    first bytes show. It may be left out where the reference has arrays by the names of all inputs.

    Raises:
        ServiceError: as for a request to run the model; 400 `invalid_npz`, `invalid_multipart`.
    """
    media_type = parse_media_type(content_type)
    reference: Mapping[str, Array] = {}
    if media_type.name == "multipart/form-data":
        parts = parse_multipart(body, media_type.parameters.get("boundary"))
        files = [part for part in parts if part.name == REFERENCE]
        if files:
            others = [part for part in parts if part.name != REFERENCE]
            if len(files) > 1:
                raise _unclear(len(parts) - 1)
            reference = read_npz(files[0].data, limits)
            inputs = None if others else _inputs_among(reference, model)
            if inputs is not None:
                return inputs, reference
            if len(others) != 1:
                raise _unclear(len(others))
            body, content_type = others[0].data, None
    decoded = decode(body, content_type, model.graph.inputs, model.config, limits)
    return decoded.inputs, reference


def _unclear(others: int) -> ServiceError:
    message = (
        f"the form has {others} parts beside {REFERENCE!r}; expected one, the input (an npz for several)"
    )
    return ServiceError(400, "invalid_multipart", message, {"expected": "multipart/form-data"})


def _inputs_among(reference: Mapping[str, Array], model: LoadedModel) -> dict[str, Array] | None:
    """Return the inputs that a reference holds; None where it lacks one."""
    found = {}
    for port in model.graph.inputs:
        names = [name for name in (port.operator, port.operand) if name in reference]
        if not names:
            return None
        found[port.operand] = reference[names[0]]
    return found
