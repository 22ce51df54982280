"""Decodes JSON bodies into the inputs of a graph.

    {"image": "<base64 or data: URL>"}                  one image
    {"images": ["<base64>", …]}                         a batch of images
    {"text": "…"}                                       one text
    {"texts": ["…", …]}                                 a batch of texts
    {"inputs": [{"name", "shape", "dtype", "data"}]}    tensors
    {"inputs": {"name": [[…], …]}}                      tensors by name, or encoded images by name

each optionally with `"parameters"`, the options of the request by name. A tensor needs only `data`: `name` may be left
out if the model has one input, `dtype` (or `datatype`) defaults to the model's, and `shape` to the nesting of the data,
or to the model's for a flat list.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import orjson

from engine import PNNX_COMPUTE, Array, Port
from service.codec.binding import bind, check_duplicates, find_port, fit
from service.codec.decoded import Decoded
from service.codec.dtype_name import find_dtype
from service.codec.formats.image import bind_images, decode_base64
from service.codec.json_document import parse_document, syntax_problem
from service.codec.json_tensor import invalid, parse_data, parse_shape
from service.codec.options import parse_options
from service.codec.text import decode_text
from service.codec.texts import bind_texts
from service.config.limits import Limits
from service.config.model_config import ModelConfig
from service.errors import ServiceError, did_you_mean
from service.images.url import URL_ADVICE, is_url
from service.tasks import task_class

_PAYLOADS = ("image", "images", "inputs", "text", "texts")
_TENSOR_KEYS = ("name", "shape", "dtype", "datatype", "data")


def decode_json(
    body: bytes,
    charset: str | None,
    ports: Sequence[Port],
    config: ModelConfig,
    limits: Limits,
    *,
    dynamic_batch: bool = False,
) -> Decoded:
    """Read a JSON body.

    Args:
        body: the whole body.
        charset: that of the `Content-Type`; None for UTF-8.
        ports: the graph's inputs.
        config: the model's configuration.
        limits: upper bounds on the request's size.
        dynamic_batch: whether any number of images may be sent, even if the file fixes the size of a batch.

    Raises:
        ServiceError: 400, 413 or 422.
    """
    return decode_document(parse_json(body, charset, limits), ports, config, limits, dynamic_batch)


def decode_document(
    document: dict[str, Any],
    ports: Sequence[Port],
    config: ModelConfig,
    limits: Limits,
    dynamic_batch: bool = False,
) -> Decoded:
    """Read a JSON body that is parsed, as `decode_json` does."""
    check_keys(document, (*_PAYLOADS, "parameters"), "the body")
    given = [key for key in _PAYLOADS if key in document]
    if len(given) != 1:
        problem = f"has both {given[0]} and {given[1]}" if given else f"has none of {', '.join(_PAYLOADS)}"
        raise _invalid(f"the body {problem}; expected exactly one of them")
    parameters = document.get("parameters", {})
    if not isinstance(parameters, dict):
        raise _invalid("parameters is not an object; expected trace, capture or other options in it")
    options = parse_options(parameters, task_class(config.task).parameters)
    inputs = document.get("inputs")
    if isinstance(inputs, dict) and inputs and all(isinstance(value, str) for value in inputs.values()):
        named = [(find_port(ports, name).operator, value) for name, value in inputs.items()]
        encoded = [(name, decode_base64(value, f"inputs.{name[:80]}")) for name, value in named]
        return bind_images(encoded, ports, config, limits, options, dynamic_batch=dynamic_batch)
    if given == ["inputs"]:
        return Decoded(_tensors(inputs, ports, limits), options)
    if given[0] in ("text", "texts"):
        texts = document["texts"] if given == ["texts"] else [document["text"]]
        return bind_texts(_texts(texts, given[0]), ports, config, limits, options)
    images = document["images"] if given == ["images"] else [document["image"]]
    return bind_images(_images(images, given[0]), ports, config, limits, options, dynamic_batch=dynamic_batch)


def _texts(texts: Any, place: str) -> list[str]:
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        expected = "a list of strings" if place == "texts" else "a string"
        raise _invalid(f"{place} is something else than {expected}")
    return texts


def parse_json(
    body: bytes, charset: str | None, limits: Limits, keys: Sequence[str] = _PAYLOADS
) -> dict[str, Any]:
    """Parse a body that is to be a JSON object; in a large one, lists of numbers may be `Numbers`.

    Args:
        body: the body.
        charset: its charset; None for UTF-8.
        limits: upper bounds on the size of a request.
        keys: what messages say that the object may have.

    Raises:
        ServiceError: 400, 413; 422 and 503 as `parse_document`.
        NeedsDecoderError: it is large, and this thread leaves those to others.
    """
    limits.check_json(len(body))
    utf8 = charset is None or charset.lower() in ("utf-8", "utf8")
    text = body if utf8 else decode_text(body, charset, "invalid_json").encode()
    text = text.removeprefix(b"\xef\xbb\xbf")
    try:
        document = parse_document(text, limits)
    except orjson.JSONDecodeError as error:
        hint = (
            '; write "NaN", "Infinity" and "-Infinity" as strings' if _has_bare_name(body, error.pos) else ""
        )
        details = {"line": error.lineno, "column": error.colno}
        raise ServiceError(
            400, "invalid_json", f"the body is not JSON: {syntax_problem(error)}{hint}", details
        ) from error
    if not isinstance(document, dict):
        raise _invalid(f"the body is not a JSON object; expected one of {', '.join(keys)} in an object")
    return document


def _has_bare_name(body: bytes, position: int) -> bool:
    """Return whether the parser failed at a name such as NaN, which some clients write without quotes."""
    return any(name in body[max(0, position - 12) : position + 12] for name in (b"NaN", b"Infinity"))


def _images(values: Any, key: str) -> list[tuple[str, bytes]]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise _invalid(f"{key} is not {'a list of strings' if key == 'images' else 'a string'} of base64")
    places = [key if key == "image" else f"images[{index}]" for index in range(len(values))]
    return [("", decode_base64(value, place)) for value, place in zip(values, places, strict=True)]


def _tensors(entries: Any, ports: Sequence[Port], limits: Limits) -> dict[str, Array]:
    if isinstance(entries, dict):
        entries = [_named_entry(name, value) for name, value in entries.items()]
    if not isinstance(entries, list):
        raise _invalid("inputs is not a list; expected objects with name, shape, dtype and data in it")
    found = [_entry_port(entry, ports, f"inputs[{index}]") for index, entry in enumerate(entries)]
    check_duplicates(found)
    named = enumerate(zip(entries, found, strict=True))
    pairs = [(port, _tensor(entry, port, limits, f"inputs[{index}]")) for index, (entry, port) in named]
    return bind(ports, pairs)


def _named_entry(name: str, value: Any) -> dict[str, Any]:
    """Return an input that is given by its name as an entry of the list of inputs."""
    if isinstance(value, str):
        raise _invalid(f"inputs.{name[:80]} is text; expected numbers, or encoded images for all inputs")
    return {**value, "name": name} if isinstance(value, dict) else {"name": name, "data": value}


def _entry_port(entry: Any, ports: Sequence[Port], place: str) -> Port:
    if not isinstance(entry, dict):
        raise _invalid(f"{place} is not an object; expected name, shape, dtype and data in it")
    check_keys(entry, _TENSOR_KEYS, place)
    return _port(entry, ports, place)


def _port(entry: dict[str, Any], ports: Sequence[Port], place: str) -> Port:
    name = entry.get("name")
    if name is not None and not isinstance(name, str):
        raise _invalid(f"{place}.name is not a string")
    return find_port(ports, name)


def _tensor(entry: dict[str, Any], port: Port, limits: Limits, place: str) -> Array:
    if "data" not in entry:
        raise invalid(place, "has no data", "numbers, nested or flat")
    declared = PNNX_COMPUTE[port.dtype] if port.dtype is not None else None
    dtype = _dtype(entry, place) or declared
    shape = parse_shape(entry["shape"], place) if entry.get("shape") is not None else None
    array = parse_data(entry["data"], shape, dtype, limits, place)
    if shape is None and array.ndim == 1:
        array = _unflatten(array, port)
    return fit(port, array)


def _dtype(entry: dict[str, Any], place: str) -> Any:
    name = entry.get("dtype", entry.get("datatype"))
    if name is None:
        return None
    dtype = find_dtype(name) if isinstance(name, str) else None
    if dtype is None:
        raise invalid(place, f"dtype is {str(name)[:40]!r}", "a name such as f32, float32 or FP32")
    return dtype


def _unflatten(array: Array, port: Port) -> Array:
    """Reshape a flat list to the input's shape, if at most one dimension of that is dynamic."""
    if port.shape is None or len(port.shape) < 2 or port.shape.count(None) > 1:
        return array
    known = prod(dim for dim in port.shape if dim is not None)
    unknown = None in port.shape
    if known == 0 or (array.size % known if unknown else array.size != known):
        message = (
            f"input {port.operator} has {array.size} elements in a flat list; expected as many as {port} has"
        )
        details = {"name": port.operator, "elements": array.size, "expected": list(port.shape)}
        raise ServiceError(422, "wrong_shape", message, details)
    return array.reshape([array.size // known if dim is None else dim for dim in port.shape])


def check_keys(document: dict[str, Any], known: Sequence[str], place: str) -> None:
    """Check that an object has known fields only.

    Raises:
        ServiceError: 422 `unknown_field`.
    """
    for key, value in document.items():
        if key not in known:
            hint = f"; {URL_ADVICE}" if is_url(value) else did_you_mean(key, known)
            message = f"{place} has {key[:40]!r}, which is unknown; known are {', '.join(known)}{hint}"
            raise ServiceError(422, "unknown_field", message, {"field": key[:40], "known": list(known)})


def _invalid(message: str) -> ServiceError:
    return ServiceError(400, "invalid_json", message)
