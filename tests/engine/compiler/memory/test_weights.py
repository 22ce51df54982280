"""Packed weights on disk: what is mapped, what is trusted, and what distinguishes files."""

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from engine.compiler.emit import code_store as stores
from engine.compiler.emit import weight_files as module
from engine.compiler.emit.code_store import CodeStore
from engine.compiler.emit.weight_files import WeightFiles
from engine.compiler.memory.alignment import ALIGNMENT, address_of
from engine.compiler.memory.weights import PackedWeights, fetch_side_by_side
from engine.dtypes import Array
from engine.pnnx.mapped_pages import sha256_of
from tests.engine.compiler.damage import damaged_at
from tests.engine.compiler.plans import weights_of
from tests.engine.models import write_model

WEIGHT = np.random.default_rng(0).standard_normal((64, 5000)).astype(np.float32)
BIAS = np.random.default_rng(1).standard_normal(64).astype(np.float32)


@dataclass(frozen=True)
class Transposing:
    """Packs by transposing; counts how often."""

    width: int

    __module__ = "engine.tests"

    @property
    def layout(self) -> tuple[object, ...]:
        return (self.width,)

    @property
    def packed_sizes(self) -> tuple[int, int]:
        return WEIGHT.size, BIAS.size

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        PACKED.append(self)
        return np.ascontiguousarray(weight.T), np.zeros(64, np.float32) if bias is None else bias


PACKED: list[object] = []
KERNEL = Transposing(16)


@pytest.fixture(autouse=True)
def nothing_is_packed() -> None:
    PACKED.clear()


def weights(
    folder: Path, kernel: Transposing = KERNEL, weight: Array = WEIGHT, bias: Array | None = BIAS
) -> PackedWeights:
    """Return weights as a process has them that begins."""
    packed = PackedWeights(kernel, (weight, bias), WeightFiles(CodeStore(folder)))
    assert np.array_equal(packed.weight(), weight.T)
    assert np.array_equal(packed.bias(), np.zeros(64) if bias is None else bias)
    return packed


def test_weights_are_packed_once_for_all_processes(tmp_path: Path) -> None:
    first, second = weights(tmp_path), weights(tmp_path)
    assert len(PACKED) == 1
    assert (
        sha256_of(first.weight())
        == sha256_of(second.weight())
        == hashlib.sha256(WEIGHT.T.tobytes()).hexdigest()
    )
    assert not first.weight().flags.writeable  # it lies in the file: processes share its memory
    assert not second.weight().flags.writeable
    assert [address_of(array) % ALIGNMENT for array in (second.weight(), second.bias())] == [0, 0]


def test_what_is_kept_is_fetched_side_by_side_and_the_rest_is_packed_later(tmp_path: Path) -> None:
    others = [WEIGHT + np.float32(number) for number in range(4)]
    for weight in others[:3]:
        weights(tmp_path, weight=weight)
    PACKED.clear()
    begun = [PackedWeights(KERNEL, (weight, BIAS), WeightFiles(CodeStore(tmp_path))) for weight in others]
    fetch_side_by_side(begun)
    assert [each.source is None for each in begun] == [True, True, True, False]
    assert not PACKED
    fetch_side_by_side(begun)
    for each, weight in zip(begun, others, strict=True):
        assert np.array_equal(each.weight(), weight.T)
    assert len(PACKED) == 1
    assert begun[3].source is None


def test_threads_that_ask_at_once_get_the_same(tmp_path: Path) -> None:
    """One of them packs, and lets the model's own weights go, while the others wait for it."""
    all_ask, count = Barrier(4), 8
    asked = [
        PackedWeights(KERNEL, (WEIGHT, BIAS), WeightFiles(CodeStore(tmp_path / str(n)))) for n in range(count)
    ]

    def ask(_: int) -> list[Array]:
        all_ask.wait()
        return [each.weight() for each in asked]

    with ThreadPoolExecutor(4) as threads:
        given = list(threads.map(ask, range(4)))
    assert len(PACKED) == count
    for arrays in given:
        assert all(ours is first for ours, first in zip(arrays, given[0], strict=True))
    assert np.array_equal(given[0][0], WEIGHT.T)


@pytest.mark.parametrize(
    "other",
    [
        {"kernel": replace(KERNEL, width=8)},
        {"weight": WEIGHT + np.float32(1)},
        {"bias": BIAS + np.float32(1)},
        {"bias": None},
    ],
)
def test_what_is_different_is_packed(tmp_path: Path, other: dict[str, object]) -> None:
    weights(tmp_path)
    weights(tmp_path, **other)  # type: ignore[arg-type]
    assert len(PACKED) == 2


def test_another_engine_packs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights(tmp_path)
    monkeypatch.setattr(stores, "_source_digest", lambda: "another")
    weights(tmp_path)
    assert len(PACKED) == 2


def test_damaged_files_are_not_used(tmp_path: Path) -> None:
    weights(tmp_path)
    (file,) = tmp_path.iterdir()
    sound = file.read_bytes()
    middle = len(sound) // 2
    for count, damaged in enumerate(
        [
            b"",
            sound[:100],
            sound[:5000],
            sound[:-ALIGNMENT],
            damaged_at(sound, 0),
            damaged_at(sound, 40),
            damaged_at(sound, middle),
        ]
    ):
        file.unlink()
        file.write_bytes(damaged)
        weights(tmp_path)
        assert len(PACKED) == 2 + count
        assert file.read_bytes() == sound


def test_what_others_may_have_written_is_not_used(tmp_path: Path) -> None:
    weights(tmp_path)
    (file,) = tmp_path.iterdir()
    file.chmod(0o666)
    weights(tmp_path)
    assert len(PACKED) == 2


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    weights(folder)
    (file,) = folder.iterdir()
    file.symlink_to(file.rename(tmp_path / "elsewhere"))
    weights(folder)
    assert len(PACKED) == 2


def test_nothing_is_kept_for_kernels_from_outside(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Outside(Transposing):
        __module__ = "examples.kernels"

    weights(tmp_path, Outside(16))
    assert not list(tmp_path.iterdir())


def test_small_weights_are_packed_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_BYTES", WEIGHT.nbytes + 1)
    weights(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_deleted_or_replaced_stays_as_it_was_mapped(tmp_path: Path) -> None:
    weights(tmp_path)
    mapped = weights(tmp_path)
    (file,) = tmp_path.iterdir()
    (tmp_path / "new").write_bytes(b"another")
    (tmp_path / "new").replace(file)
    assert np.array_equal(mapped.weight(), WEIGHT.T)
    file.unlink()
    assert np.array_equal(mapped.weight(), WEIGHT.T)


RUN = """
import sys
import numpy as np
from engine import RuntimeGraph
graph = RuntimeGraph(sys.argv[1])
graph.build()
(result,) = graph.run([np.linspace(-1, 1, 1024, dtype="f4").reshape(1, 1024)]).outputs
print(result.tobytes().hex(), graph.verification.recalled)
"""


def test_processes_that_map_weights_compute_what_those_that_pack_them_do(tmp_path: Path) -> None:
    text = "\n".join(
        (
            "pnnx.Input in 0 1 x #x=(1,1024)f32",
            "nn.Linear fc 1 1 x y bias=True in_features=1024 out_features=512 @bias=(512)f32 @weight=(512,1024)f32",
            "pnnx.Output out 1 0 y",
        )
    )
    param = write_model(tmp_path, text, weights_of(text))
    cache = tmp_path / "cache"
    printed = []
    for folder in ("", str(cache), str(cache)):
        environment = os.environ | {"KUIPER_CACHE": folder, "KUIPER_BACKEND": "native"}
        command = [sys.executable, "-c", RUN, str(param)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        printed.append(done.stdout.split())
    assert len({result for result, _ in printed}) == 1
    assert [recalled for _, recalled in printed] == ["0", "0", "1"]
    assert len(list((cache / "weights").iterdir())) == 1
