"""`text/csv`: a table of numbers (RFC 4180)."""

from collections.abc import Iterator

import numpy as np

from engine import PNNX_COMPUTE
from service.codec.binding import only_port
from service.codec.decoded import Decoded
from service.codec.format import Example, Format, JsonSchema, RequestBody, Sample, curl_file
from service.codec.table import read_table
from service.errors import ServiceError


class CsvFormat(Format):
    """The rows of a model's only input, which has two dimensions."""

    name = "csv"
    media_types = ("text/csv",)
    aliases = ("application/csv",)

    def decode(self, body: RequestBody) -> Decoded:
        """Read the table as the input's dtype, float32 where it declares none."""
        port = only_port(body.ports, "one table")
        if port.shape is not None and len(port.shape) != 2:
            count = len(port.shape)
            message = (
                f"input {port.operator} ({port}) has {count} dimensions; CSV is for two: send npy or JSON"
            )
            details = {"name": port.operator, "expected": list(port.shape)}
            raise ServiceError(422, "wrong_rank", message, details)
        dtype = np.dtype(np.float32) if port.dtype is None else PNNX_COMPUTE[port.dtype]
        table = read_table(
            body.data,
            dtype,
            body.limits,
            charset=body.charset,
            header=body.parameters.get("header"),
            columns=None if port.shape is None else port.shape[1],
        )
        return Decoded({port.operand: table})

    def schema(self) -> JsonSchema:
        """Return the schema: text."""
        return {"type": "string", "description": "a two-dimensional input, with or without header"}

    def examples(self, sample: Sample) -> Iterator[Example]:
        """Yield the rows of a sample that is one table."""
        arrays = list(sample.arrays.values())
        if len(arrays) == 1 and arrays[0].ndim == 2:
            rows = (",".join(str(value) for value in row) for row in arrays[0].astype(float).tolist())
            (media_type,) = self.media_types
            yield Example(media_type, "table", "\n".join([*rows, ""]), curl_file(media_type, "table.csv"))
