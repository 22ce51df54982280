"""What is fuzzed: a name, and a function that takes any bytes and raises only where something is wrong."""

from collections.abc import Callable

from tests.fuzz.targets.codec import infer_json, npy, v2_json
from tests.fuzz.targets.files import archive, model_toml, param
from tests.fuzz.targets.http import http_head
from tests.fuzz.targets.text import expression

Target = Callable[[bytes], None]

TARGETS: dict[str, Target] = {
    "param": param,
    "bin": archive,
    "expression": expression,
    "model_toml": model_toml,
    "npy": npy,
    "infer_json": infer_json,
    "v2_json": v2_json,
    "http_head": http_head,
}

__all__ = ["TARGETS", "Target"]
