"""Requests without a JSON part: the whole body is the model's only input."""

from collections.abc import Sequence
from math import prod

from engine import Port
from service.codec.formats import IMAGE_FORMAT
from service.config.model_config import ModelConfig
from service.errors import ServiceError
from service.v2.datatypes import BYTES, WIRE_SIZES, datatype_of
from service.v2.ports import DYNAMIC, wire_shape
from service.v2.request import InputTensor


def raw_input(
    body: memoryview, ports: Sequence[Port], config: ModelConfig, dynamic_batch: bool
) -> tuple[InputTensor, memoryview]:
    """Describe a raw body as the only input of a model.

    A dynamic first dimension is 1; one more dynamic dimension is derived from the size of the body. If the model takes
    images, the body may be an encoded image.

    Returns:
        The input and its binary data.

    Raises:
        ServiceError: 400 `invalid_request` or `wrong_size`.
    """
    if len(ports) != 1:
        message = f"a raw body is one input, but the model takes {len(ports)}; describe them in JSON"
        raise ServiceError(400, "invalid_request", message, {"inputs": [port.operand for port in ports]})
    port = ports[0]
    datatype = datatype_of(port)
    shape = _shape(wire_shape(port, dynamic_batch), len(body), WIRE_SIZES[datatype])
    expected = prod(shape) * WIRE_SIZES[datatype]
    if expected != len(body) and config.image is not None and IMAGE_FORMAT.matches(bytes(body[:64])):
        data = len(body).to_bytes(4, "little") + bytes(body)
        return InputTensor(port.operand, (1,), BYTES, None, len(data)), memoryview(data)
    return InputTensor(port.operand, tuple(shape), datatype, None, len(body)), body


def _shape(declared: Sequence[int], size: int, itemsize: int) -> list[int]:
    shape = list(declared)
    if len(shape) > 1 and shape[0] == DYNAMIC:
        shape[0] = 1
    if shape.count(DYNAMIC) > 1:
        message = f"a raw body does not give the shape of an input like {list(declared)}; describe it in JSON"
        raise ServiceError(400, "invalid_request", message, {"shape": list(declared)})
    if DYNAMIC in shape:
        known = prod(dim for dim in shape if dim != DYNAMIC) * itemsize
        shape[shape.index(DYNAMIC)] = size // known if known else 0
    return shape
