"""`application/x-npz`: arrays by name, as `numpy.savez` writes them."""

import re
from collections.abc import Iterator, Sequence
from io import BytesIO
from time import perf_counter_ns
from typing import Any

import numpy as np

from engine import Array
from service.codec.binding import bind, fit, pair_up
from service.codec.decoded import Decoded
from service.codec.format import (
    BINARY_SCHEMA,
    Clock,
    Example,
    JsonSchema,
    RequestBody,
    ResponseFormat,
    Sample,
    base64_text,
    curl_file,
)
from service.codec.json_text import dump_json
from service.codec.npz import read_npz
from service.codec.npz_writer import NpzWriter
from service.codec.response import ResponseDocument, complete_timing
from service.config.limits import Limits

NPZ_TYPE = "application/x-npz"


class NpzFormat(ResponseFormat):
    """One array for each input, and one for each output."""

    name = "npz"
    media_types = (NPZ_TYPE,)
    aliases = ("application/zip",)
    signatures = (re.compile(rb"PK(\x03\x04|\x05\x06)"),)

    def decode(self, body: RequestBody) -> Decoded:
        """Read the arrays, and pair them with the inputs by name or by number."""
        arrays = read_npz(body.data, body.limits)
        pairs = pair_up(body.ports, arrays)
        return Decoded(bind(body.ports, [(port, fit(port, array)) for port, array in pairs]))

    def encode(
        self,
        response: ResponseDocument,
        received_ns: int,
        clock: Clock = perf_counter_ns,
        limits: Limits | None = None,
    ) -> Sequence[bytes | memoryview]:
        """Serialise a response as an uncompressed `.npz`.

        Entries: each output by its name, each captured operand as `captured/NAME` (`captured/NAME/0` … for a tuple),
        and `meta`, the JSON response without the arrays' `data`: `json.loads(np.load(file)["meta"])`.
        """
        started = clock()
        arrays = {output["name"]: output["data"] for output in response["outputs"]}
        for entry in response.get("captured", ()):
            arrays |= _leaves(f"captured/{entry['name']}", entry)
        writer = NpzWriter()
        writer.write_arrays(arrays)
        meta = response | {"outputs": _without_data(response["outputs"])}
        if "captured" in response:
            meta["captured"] = _without_data(response["captured"])
        meta["timing"] = complete_timing(response, received_ns, started, clock())
        writer.write_text("meta", dump_json(meta))
        pieces = writer.close()
        if limits is not None:
            limits.check_response(sum(map(len, pieces)))
        return pieces

    def schema(self) -> JsonSchema:
        """Return the schema: bytes."""
        return {**BINARY_SCHEMA, "description": "one array for each input, by name"}

    def examples(self, sample: Sample) -> Iterator[Example]:
        """Yield the arrays of a sample."""
        if sample.arrays:
            target = BytesIO()
            arrays: dict[str, Any] = dict(sample.arrays)
            np.savez(target, **arrays)
            yield Example(
                NPZ_TYPE, "arrays", base64_text(target.getvalue()), curl_file(NPZ_TYPE, "inputs.npz")
            )


def _leaves(name: str, entry: dict[str, Any]) -> dict[str, Array]:
    """Return the arrays in a captured value by entry name; other values stay in `meta`."""
    data = entry["data"]
    if isinstance(data, np.ndarray):
        return {name: data}
    if entry["dtype"] not in ("tuple", "list"):
        return {}
    leaves: dict[str, Array] = {}
    for index, item in enumerate(data):
        leaves |= _leaves(f"{name}/{index}", item)
    return leaves


def _without_data(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = []
    for entry in entries:
        rest = dict(entry)
        if isinstance(rest["data"], np.ndarray):
            del rest["data"]
        elif rest["dtype"] in ("tuple", "list"):
            rest["data"] = _without_data(rest["data"])
        kept.append(rest)
    return kept
