"""Bodies of requests: npy, JSON for /infer, JSON for /v2."""

from functools import lru_cache

from engine import Port
from service.codec import decode
from service.config.limits import Limits
from service.config.model_config import ModelConfig
from service.errors import ServiceError
from service.repository.loaded_model import LoadedModel
from service.repository.version_loader import LoadOptions, load_version
from service.v2.compression import IDENTITY
from service.v2.exchange import V2Exchange
from tests.fuzz.targets.folder import folder
from tests.service.models import PAIR, add_model

LIMITS = Limits(body_bytes=1 << 16, image_pixels=4096, tensor_elements=4096)
_PORTS = (
    (Port("pnnx_input_0", "0", (None, None), "i64"),),
    (Port("pnnx_input_0", "a", None, None), Port("pnnx_input_1", "b", (2,), "c64")),
)
_REFUSALS = (400, 413, 415, 422)


def npy(data: bytes) -> None:
    """Decode an array as the body of a request."""
    _decode(data, "application/octet-stream" if data[:1] == b"\0" else "application/x-npy")


def infer_json(data: bytes) -> None:
    """Decode a JSON document as the body of a request to /infer."""
    _decode(data, "application/json")


def _decode(data: bytes, content_type: str) -> None:
    for ports in _PORTS:
        try:
            decode(data, content_type, ports, ModelConfig(), LIMITS)
        except ServiceError as error:
            _check(error)


def v2_json(data: bytes) -> None:
    """Decode a JSON document as the body of a request to /v2, alone and as the JSON part of binary data."""
    for length in (None, len(data) // 2):
        exchange = V2Exchange(_model(), data, IDENTITY, length, IDENTITY, LIMITS)
        try:
            exchange.scheduling()
            exchange.decode()
        except ServiceError as error:
            _check(error)


@lru_cache(maxsize=1)
def _model() -> LoadedModel:
    path = add_model(folder(), "pair", PAIR)
    return load_version("pair", path, LoadOptions(limits=LIMITS, warm_up=False, backend="numpy"))


def _check(error: ServiceError) -> None:
    if error.status not in _REFUSALS:
        raise AssertionError(f"status {error.status}") from error
