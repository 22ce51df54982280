"""Answers -> bytes."""

import zipfile
from collections.abc import Callable
from io import BytesIO
from time import perf_counter_ns
from typing import Any

import numpy as np
import orjson

from engine.dtypes import Array
from service.codec.accept import NPZ_TYPE
from service.codec.answer import Answer
from service.codec.json_array import json_data

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY
_Clock = Callable[[], int]


def encode(answer: Answer, media_type: str, received_ns: int, clock: _Clock = perf_counter_ns) -> bytes:
    """Serialise an answer and fill in the two times that only now are known.

    Args:
        answer: what `build_answer` gave.
        media_type: what `negotiate` chose.
        received_ns: `perf_counter_ns` of the moment when the request was complete.
        clock: for tests.
    """
    if media_type == NPZ_TYPE:
        return encode_npz(answer, received_ns, clock)
    return encode_json(answer, received_ns, clock)


def encode_json(answer: Answer, received_ns: int, clock: _Clock = perf_counter_ns) -> bytes:
    """Serialise an answer as JSON.

    `timing.encode_ms` is the time that all other members take: each is serialised on its own, and `timing` last,
    before they are joined in the answer's order.
    """
    started = clock()
    members = {key: _dumps(value) for key, value in answer.items() if key != "timing"}
    members["timing"] = _dumps(_finished(answer, received_ns, started, clock()))
    return b"{" + b",".join(b"%b:%b" % (_dumps(key), members[key]) for key in answer) + b"}"


def encode_npz(answer: Answer, received_ns: int, clock: _Clock = perf_counter_ns) -> bytes:
    """Serialise an answer as an uncompressed `.npz`.

    Entries: each output by its name, each captured operand as `captured/NAME` (`captured/NAME/0` … for a tuple), and
    `meta`, the JSON answer without the arrays' `data`: `json.loads(np.load(file)["meta"])`.
    """
    started = clock()
    arrays = {output["name"]: output["data"] for output in answer["outputs"]}
    for entry in answer.get("captured", ()):
        arrays |= _leaves(f"captured/{entry['name']}", entry)
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
        meta = answer | {"outputs": _without_data(answer["outputs"])}
        if "captured" in answer:
            meta["captured"] = _without_data(answer["captured"])
        meta["timing"] = _finished(answer, received_ns, started, clock())
        archive.writestr("meta", _dumps(meta))
    return target.getvalue()


def _dumps(value: Any) -> bytes:
    return orjson.dumps(_prepared(value), option=_OPTIONS)


def _prepared(value: Any) -> Any:
    """Replace arrays, wherever they are, by what the serialiser takes."""
    if isinstance(value, np.ndarray):
        return json_data(value)
    if isinstance(value, dict):
        return {key: _prepared(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_prepared(item) for item in value]
    return value


def _finished(answer: Answer, received: int, started: int, ended: int) -> dict[str, float | bool]:
    times = {"encode_ms": (ended - started) / 1e6, "total_ms": (ended - received) / 1e6}
    return {**answer["timing"], **{key: round(value, 4) for key, value in times.items()}}


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
