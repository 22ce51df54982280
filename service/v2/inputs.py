"""Converts the inputs of a request to arrays for the graph."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from engine import PNNX_COMPUTE, Array, Port
from service.codec.binding import bind, check_duplicates
from service.codec.decoded import Decoded, Picture
from service.codec.formats.image import bind_images, decode_base64
from service.codec.json_tensor import parse_data
from service.config.limits import Limits
from service.config.model_config import ModelConfig
from service.errors import ServiceError
from service.v2.binary import read_array, read_strings
from service.v2.datatypes import BYTES, DTYPES, accepted_datatypes, is_complex
from service.v2.document import bad_request
from service.v2.ports import check_shape, find_port
from service.v2.request import InputTensor


def read_inputs(
    tensors: Sequence[InputTensor],
    parts: Sequence[memoryview],
    ports: Sequence[Port],
    config: ModelConfig,
    dynamic_batch: bool,
    limits: Limits,
) -> Decoded:
    """Read the inputs of a request.

    Args:
        tensors: the inputs that the request describes.
        parts: the binary data of each of them; empty where its elements are in the description.
        ports: the graph's inputs.
        config: the model's configuration.
        dynamic_batch: whether the first dimension of the inputs may have any extent, even if the file fixes it.
        limits: upper bounds on the size of a request.

    Returns:
        Operand name -> array, in the order of the graph's inputs, and the pictures that inputs were made of. Arrays of
        binary data are read-only views.

    Raises:
        ServiceError: 400 or 413; for images also 422.
    """
    pairs: list[tuple[Port, Array]] = []
    images: list[tuple[Port, list[bytes]]] = []
    found = [ports[find_port(ports, tensor.name, "input")] for tensor in tensors]
    check_duplicates(found)
    for tensor, part, port in zip(tensors, parts, found, strict=True):
        if tensor.datatype == BYTES:
            images.append((port, _images(tensor, part, port, config)))
        else:
            pairs.append((port, _numbers(tensor, part, port, dynamic_batch, limits)))
    prepared, pictures = _prepare(images, config, dynamic_batch, limits)
    return Decoded(bind(ports, [*pairs, *prepared]), pictures=pictures)


def as_input(port: Port, array: Array) -> Array:
    """Return an array in the form that the graph expects: pairs of floats become complex numbers."""
    if not is_complex(port):
        return array
    pairs = np.ascontiguousarray(array)
    return pairs.view(PNNX_COMPUTE[port.dtype or ""]).reshape(pairs.shape[:-1])


def _numbers(tensor: InputTensor, part: memoryview, port: Port, dynamic_batch: bool, limits: Limits) -> Array:
    accepted = accepted_datatypes(port)
    if tensor.datatype not in accepted:
        message = f"{tensor.place} is {tensor.datatype}; the model takes {' or '.join(accepted)}"
        details = {"name": port.operand, "datatype": tensor.datatype, "expected": list(accepted)}
        raise ServiceError(400, "wrong_datatype", message, details)
    check_shape(port, tensor.shape, dynamic_batch)
    if tensor.binary_size is not None:
        return as_input(port, read_array(tensor, part, limits))
    dtype = DTYPES[tensor.datatype]
    return as_input(port, parse_data(tensor.data, tensor.shape, dtype, limits, tensor.place))


def _images(tensor: InputTensor, part: memoryview, port: Port, config: ModelConfig) -> list[bytes]:
    """Return the encoded images of a BYTES tensor."""
    if config.image is None:
        message = f"{tensor.place} is BYTES, which are encoded images, but the model takes none"
        details = {"name": port.operand, "expected": list(accepted_datatypes(port))}
        raise ServiceError(400, "wrong_datatype", message, details)
    if len(tensor.shape) > 2 or tensor.shape[1:] not in ((), (1,)):
        message = f"{tensor.place} has shape {list(tensor.shape)}; images come as [batch] or [batch, 1]"
        raise ServiceError(400, "wrong_shape", message, {"shape": list(tensor.shape)})
    if tensor.binary_size is not None:
        return read_strings(tensor, part)
    texts = _texts(tensor.data)
    if len(texts) != tensor.elements or not all(isinstance(text, str) for text in texts):
        raise bad_request(
            f"{tensor.place}: data is not {tensor.elements} strings of base64, as its shape says"
        )
    return [decode_base64(text, f"{tensor.place}, data[{index}]") for index, text in enumerate(texts)]


def _texts(data: Any) -> list[Any]:
    """Return strings in JSON as a flat list; they may be nested as [batch, 1]."""
    if not isinstance(data, list):
        return [data]
    if data and all(isinstance(item, list) for item in data):
        return list(chain.from_iterable(data))
    return data


def _prepare(
    images: Sequence[tuple[Port, list[bytes]]], config: ModelConfig, dynamic_batch: bool, limits: Limits
) -> tuple[list[tuple[Port, Array]], tuple[Picture, ...]]:
    if not images:
        return [], ()
    ports = [port for port, _ in images]
    named = [(port.operand, image) for port, encoded in images for image in encoded]
    decoded = bind_images(named, ports, config, limits, dynamic_batch=dynamic_batch)
    return [(port, decoded.inputs[port.operand]) for port, _ in images], decoded.pictures
