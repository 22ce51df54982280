"""Upper bounds on the size of a request."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from service.errors import ServiceError


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds on the size of a request, checked before anything of that size is allocated.

    Attributes:
        body_bytes: bytes of a request's body, compressed and decompressed.
        json_bytes: bytes of JSON in a body, decompressed.
        image_pixels: pixels (width x height) of all images of a request in total; those of formats that take more
            memory to decode count several times.
        tensor_elements: elements of each input.
        response_bytes: bytes of a response, and of the arrays that it is made of.
        decode_seconds: seconds of the processor that decoding a large body may take.
    """

    body_bytes: int = 64 << 20
    json_bytes: int = 16 << 20
    image_pixels: int = 64 << 20
    tensor_elements: int = 16 << 20
    response_bytes: int = 128 << 20
    decode_seconds: float = 10.0

    def check_body(self, size: int) -> None:
        """Raise 413 `body_too_large` if a body of `size` bytes is too large."""
        if size > self.body_bytes:
            raise too_large("body_too_large", "the body", size, self.body_bytes, "bytes")

    def check_json(self, size: int) -> None:
        """Raise 413 `body_too_large` if JSON of `size` bytes is too large."""
        if size > self.json_bytes:
            message = (
                f"the JSON has {size} bytes; the maximum is {self.json_bytes}: "
                "send npy, npz or binary tensor data, or raise --max-body-bytes, of which JSON may have a quarter"
            )
            raise ServiceError(413, "body_too_large", message, {"limit": self.json_bytes, "unit": "bytes"})

    def check_response(self, size: int) -> None:
        """Raise 413 `response_too_large` if a response of `size` bytes or more is too large."""
        if size > self.response_bytes:
            message = f"the response has {size} bytes or more; the maximum is {self.response_bytes}"
            raise ServiceError(
                413, "response_too_large", message, {"limit": self.response_bytes, "unit": "bytes"}
            )

    def check_text(self, size: int) -> None:
        """Raise 413 `response_too_large` if a response is too large that will have about `size` bytes as JSON."""
        if size > self.response_bytes:
            message = (
                f"the response would have about {size} bytes as JSON; the maximum is {self.response_bytes}: "
                "ask for fewer operands or rows, or for application/x-npz"
            )
            raise ServiceError(
                413, "response_too_large", message, {"limit": self.response_bytes, "unit": "bytes"}
            )

    def check_shape(self, shape: Sequence[int], place: str) -> None:
        """Raise 413 `tensor_too_large` if a shape has too many elements.

        A dimension of 0 counts as 1, because numpy cannot create an empty array whose other dimensions overflow.
        """
        count = prod([max(dim, 1) for dim in shape])
        if count > self.tensor_elements:
            raise too_large("tensor_too_large", place, count, self.tensor_elements, "elements")


def too_large(code: str, place: str, count: int, limit: int, unit: str) -> ServiceError:
    """Return the error for something that exceeds a limit."""
    message = f"{place} has {count} {unit}; the maximum is {limit}"
    return ServiceError(413, code, message, {"limit": limit, "unit": unit})
