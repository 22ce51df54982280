"""Serialises values that may hold arrays as JSON."""

from typing import Any

import numpy as np
import orjson

from service.codec.json_array import json_data

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY


def dump_json(value: Any) -> bytes:
    """Serialise a value of dicts, lists, arrays and plain values as JSON in UTF-8."""
    return orjson.dumps(_prepared(value), option=_OPTIONS)


def _prepared(value: Any) -> Any:
    """Replace arrays, at any depth, by values that the serialiser takes."""
    if isinstance(value, np.ndarray):
        return json_data(value)
    if isinstance(value, dict):
        return {key: _prepared(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_prepared(item) for item in value]
    return value
