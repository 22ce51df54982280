"""`application/x-npy`: one array, as `numpy.save` writes it."""

import re
from collections.abc import Iterator
from io import BytesIO

import numpy as np

from service.codec.binding import fit, only_port
from service.codec.decoded import Decoded
from service.codec.format import (
    BINARY_SCHEMA,
    Example,
    Format,
    JsonSchema,
    RequestBody,
    Sample,
    base64_text,
    curl_file,
)
from service.codec.npy import MAGIC, read_npy


class NpyFormat(Format):
    """The array of a model's only input."""

    name = "npy"
    media_types = ("application/x-npy",)
    signatures = (re.compile(re.escape(MAGIC)),)

    def decode(self, body: RequestBody) -> Decoded:
        """Read the array; it is copied only if its dtype is not the input's."""
        array = read_npy(body.data, body.limits)
        port = only_port(body.ports, "one npy array")
        return Decoded({port.operand: fit(port, array)})

    def schema(self) -> JsonSchema:
        """Return the schema: bytes."""
        return {**BINARY_SCHEMA, "description": "the model's only input"}

    def examples(self, sample: Sample) -> Iterator[Example]:
        """Yield the array of a sample that has one."""
        if len(sample.arrays) == 1:
            (array,) = sample.arrays.values()
            target = BytesIO()
            np.save(target, array)
            (media_type,) = self.media_types
            yield Example(
                media_type, "array", base64_text(target.getvalue()), curl_file(media_type, "input.npy")
            )
