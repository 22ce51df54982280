"""A payload kind: `application/octet-stream`, the plain elements of a tensor, as `array.tobytes()` gives them."""

from math import prod
from time import perf_counter_ns

import numpy as np

from engine import PNNX_COMPUTE, Port
from service.codec import Decoded, RequestBody, ResponseFormat, register_format
from service.codec.binding import fit, only_port
from service.codec.format import BINARY_SCHEMA, Clock, JsonSchema
from service.codec.response import ResponseDocument
from service.config.limits import Limits
from service.errors import ServiceError


class OctetStream(ResponseFormat):
    """The elements of a model's only input, or of its outputs one after the other; little-endian, in C order."""

    name = "octet-stream"
    media_types = ("application/octet-stream",)

    def decode(self, body: RequestBody) -> Decoded:
        """Read elements of the input's dtype, float32 where it declares none.

        Raises:
            ServiceError: 413 `tensor_too_large`; 422 `missing_input`, or `wrong_shape` where the number of bytes does
                not lead to one shape.
        """
        port = only_port(body.ports, "a body of plain elements")
        dtype = PNNX_COMPUTE[port.dtype or "f32"].newbyteorder("<")
        shape = _shape(port, len(body.data), dtype.itemsize)
        body.limits.check_shape(shape, f"input {port.operator}")
        array = np.frombuffer(body.data, np.uint8 if dtype.kind == "b" else dtype)
        if dtype.kind == "b":
            array = array != 0  # whatever else the bytes of a boolean are would not be one
        return Decoded({port.operand: fit(port, array.reshape(shape))})

    def encode(
        self,
        response: ResponseDocument,
        received_ns: int,
        clock: Clock = perf_counter_ns,
        limits: Limits | None = None,
    ) -> list[bytes]:
        """Return the elements of all outputs, which were checked already; shapes and times have no place here."""
        del received_ns, clock, limits
        arrays = [np.asarray(output["data"]) for output in response["outputs"]]
        return [array.astype(array.dtype.newbyteorder("<")).tobytes() for array in arrays]

    def schema(self) -> JsonSchema:
        """Return the schema: bytes."""
        return {**BINARY_SCHEMA, "description": "the elements of the model's only input"}


def _shape(port: Port, size: int, itemsize: int) -> list[int]:
    """Return the input's shape, one dynamic dimension worked out from the number of bytes."""
    shape = [-1] if port.shape is None else [-1 if dim is None else dim for dim in port.shape]
    known = prod(dim for dim in shape if dim >= 0) * itemsize
    rest, remainder = divmod(size, known) if known else (0, size)
    if remainder or shape.count(-1) > 1 or (-1 not in shape and rest != 1):
        message = f"input {port.operator} ({port}) cannot be made of {size} bytes"
        raise ServiceError(422, "wrong_shape", message, {"name": port.operator, "bytes": size})
    return [rest if dim < 0 else dim for dim in shape]


register_format(OctetStream())
