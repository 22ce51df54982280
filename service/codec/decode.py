"""Bodies -> arrays: finds out what a body is and hands it to the reader of its kind."""

from collections.abc import Sequence

import numpy as np

from engine import Port
from engine.dtypes import PNNX_COMPUTE, Array
from service.codec.binding import bind, fit, only_port, pair_up
from service.codec.decoded import Decoded
from service.codec.json_body import decode_json
from service.codec.media_type import Kind, find_kind, parse_media_type, sniff
from service.codec.multipart import invalid, parse_multipart
from service.codec.npy import read_npy
from service.codec.npz import read_npz
from service.codec.options import NAMES, parse_options
from service.codec.pictures import bind_pictures
from service.codec.table import read_table
from service.codec.text import decode_text
from service.config.limits import Limits
from service.config.model_config import ModelConfig
from service.errors import ServiceError


def decode(
    body: bytes, content_type: str | None, ports: Sequence[Port], config: ModelConfig, limits: Limits
) -> Decoded:
    """Turn a request's body into the inputs of a graph.

    Args:
        body: the whole body.
        content_type: the header; where it is missing or none of ours, the first bytes of the body decide.
        ports: the graph's inputs, as `graph.inputs` gives them.
        config: the model's configuration.
        limits: what is too much.

    Raises:
        ServiceError: 400, 413, 415 or 422, as listed in the package's docstring; never anything else.
    """
    limits.check_body(len(body))
    if not body:
        raise ServiceError(400, "empty_body", "the body is empty; send an image, JSON, npy, npz or CSV")
    media_type = parse_media_type(content_type)
    charset = media_type.parameters.get("charset")
    match find_kind(media_type, body):
        case Kind.IMAGE:
            only_port(ports, "one image")
            return Decoded(bind_pictures([("", body)], ports, config, limits))
        case Kind.JSON:
            return decode_json(body, charset, ports, config, limits)
        case Kind.NPY:
            return Decoded(_one(ports, read_npy(body, limits), "one npy array"))
        case Kind.NPZ:
            return Decoded(_many(ports, read_npz(body, limits)))
        case Kind.CSV:
            return Decoded(_table(body, charset, media_type.parameters.get("header"), ports, limits))
        case Kind.MULTIPART:
            return _form(body, media_type.parameters.get("boundary"), ports, config, limits)


def _one(ports: Sequence[Port], array: Array, what: str) -> dict[str, Array]:
    port = only_port(ports, what)
    return {port.operand: fit(port, array)}


def _many(ports: Sequence[Port], arrays: dict[str, Array]) -> dict[str, Array]:
    return bind(ports, [(port, fit(port, array)) for port, array in pair_up(ports, arrays)])


def _table(
    body: bytes, charset: str | None, header: str | None, ports: Sequence[Port], limits: Limits
) -> dict[str, Array]:
    port = only_port(ports, "one table")
    if port.shape is not None and len(port.shape) != 2:
        message = f"input {port.operator} ({port}) has {len(port.shape)} dimensions; CSV is for two"
        raise ServiceError(422, "wrong_rank", message, {"name": port.operator, "expected": list(port.shape)})
    dtype = np.dtype(np.float32) if port.dtype is None else PNNX_COMPUTE[port.dtype]
    text = decode_text(body, charset, "invalid_csv")
    return {port.operand: read_table(text, dtype, limits, header)}


def _form(
    body: bytes, boundary: str | None, ports: Sequence[Port], config: ModelConfig, limits: Limits
) -> Decoded:
    """Read a form: files are images, other fields are options."""
    images, options = [], {}
    for part in parse_multipart(body, boundary):
        if part.is_file or sniff(part.data) is Kind.IMAGE:
            images.append((part.name, part.data))
        elif part.name in NAMES:
            options[part.name] = decode_text(part.data, None, "invalid_multipart")
        else:
            message = f"the form's field {part.name[:40]!r} is no file; expected one, or {', '.join(NAMES)}"
            raise ServiceError(422, "unknown_field", message, {"field": part.name[:40], "known": list(NAMES)})
    if not images:
        raise invalid("the form has no file; expected an image, as curl -F file=@image.png sends it")
    return Decoded(bind_pictures(images, ports, config, limits), parse_options(options))
