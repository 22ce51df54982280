"""How often a compressed body is decompressed on its way to the inputs of a graph."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from service.config.limits import Limits
from service.repository.loaded_model import LoadedModel
from service.repository.version_loader import LoadOptions, load_version
from service.v2 import compression
from service.v2 import exchange as module
from service.v2.compression import GZIP
from service.v2.exchange import SMALL_BYTES, V2Exchange
from tests.service.models import add_model
from tests.service.v2.bodies import json_input
from tests.service.v2.models import SAME

LIMITS = Limits()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    folder = add_model(tmp_path_factory.mktemp("models"), "same", SAME.format(dtype="f32"))
    return load_version("same", Path(folder), LoadOptions(limits=LIMITS, warm_up=False))


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the bytes of each body that is decompressed."""
    sizes: list[int] = []
    decompress = compression.decompress

    def note(body: bytes | bytearray, encoding: str, limits: Limits) -> bytes | bytearray:
        whole = decompress(body, encoding, limits)
        if encoding == GZIP:
            sizes.append(len(whole))
        return whole

    monkeypatch.setattr(module, "decompress", note)
    return sizes


def exchange_of(model: LoadedModel, text: bytes) -> V2Exchange:
    return V2Exchange(model, gzip.compress(text), GZIP, None, "identity", LIMITS)


def text_of(rows: int, spaces: int = 0) -> bytes:
    array = np.random.default_rng(0).random((rows, 2), np.float32)
    return json.dumps({"inputs": [json_input("pnnx_input_0", array)]}).encode() + b" " * spaces


@pytest.mark.parametrize(("rows", "spaces", "times"), [(1, 0, 1), (4000, 0, 2), (1, 2 * SMALL_BYTES, 2)])
def test_a_light_body_is_decompressed_once_or_twice(
    model: LoadedModel, unpacked: list[int], rows: int, spaces: int, times: int
) -> None:
    exchange = exchange_of(model, text_of(rows, spaces))
    exchange.scheduling()
    (array,) = exchange.decode().inputs.values()
    assert array.shape == (rows, 2)
    assert len(unpacked) == times
