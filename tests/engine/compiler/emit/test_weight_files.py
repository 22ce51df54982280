"""Weights that are mapped instead of kept in memory: the same numbers, whatever becomes of the model's own file."""

import hashlib
import json
import mmap
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from engine import Activation, BuildError, Quantization, RuntimeGraph, TensorScale
from engine import graph as graph_module
from engine.compiler.emit import weight_files as module
from engine.compiler.emit.code_store import CodeStore
from engine.compiler.emit.weight_files import WEIGHTS, WeightFiles
from engine.compiler.emit.weight_files import digest_of as identity_of
from engine.compiler.memory.alignment import ALIGNMENT, address_of
from engine.dtypes import Array
from engine.errors import ArchiveError
from engine.pnnx import archive
from engine.pnnx.archive import read_archive
from engine.pnnx.archive_writer import write_archive
from engine.pnnx.mapped_pages import release_pages, sha256_of
from engine.quantization.weights import QuantizedWeights, quantize_weights
from tests.engine.models import write_model

NETWORK = Path(__file__).parents[3] / "golden" / "networks" / "data" / "resnet18" / "resnet18.pnnx.param"
BIG: Array = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
ODD: Array = np.arange(7, dtype=np.uint8)
WEIGHT: Array = np.random.default_rng(0).standard_normal((64, 32, 3, 3)).astype(np.float32)
MODEL = """
pnnx.Input in 0 1 x #x=(1,32,6,7)f32
nn.Conv2d conv 1 1 x y in_channels=32 out_channels=64 kernel_size=(3,3) stride=(1,1) padding=(1,1) dilation=(1,1) \
groups=1 bias=False padding_mode=zeros @weight=(64,32,3,3)f32
pnnx.Output out 1 0 y
"""


@pytest.fixture(autouse=True)
def small_files_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LEAST_KEPT", 1)


@pytest.fixture
def cache(tmp_path: Path) -> WeightFiles:
    return WeightFiles(CodeStore(tmp_path / "kept"))


def write(path: Path, big: Array = BIG) -> Path:
    entries = {"a.weight": big.data.cast("B"), "b.none": memoryview(b""), "b.bias": ODD.data}
    write_archive(path, entries.items())
    return path


def numbers(entries: dict[str, memoryview]) -> Array:
    return np.frombuffer(entries["a.weight"], np.float32)


def is_mapped(data: Array | memoryview) -> bool:
    base: Any = data
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return isinstance(base, mmap.mmap)


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_what_is_kept_is_mapped_and_the_same(tmp_path: Path, cache: WeightFiles) -> None:
    path = write(tmp_path / "model.bin")
    first, second = read_archive(path, cache), read_archive(path, cache)
    assert is_mapped(first["a.weight"])  # by the process that has written it as well
    assert is_mapped(second["a.weight"])
    assert first == second == read_archive(path)
    assert list(second) == ["a.weight", "b.none", "b.bias"]
    assert all(data.readonly for data in second.values())
    assert address_of(numbers(second)) % ALIGNMENT == 0


def test_a_file_that_is_kept_is_never_in_memory_as_a_whole(
    tmp_path: Path, cache: WeightFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, size: int) -> NoReturn:
        raise AssertionError(f"{size} bytes of {path}")

    monkeypatch.setattr(archive, "_allocate", refuse)
    monkeypatch.setattr(archive, "_PIECE_BYTES", 1000)
    path = write(tmp_path / "model.bin")
    np.testing.assert_array_equal(numbers(read_archive(path, cache)), BIG)
    assert read_archive(path, cache).digest == digest_of(path)
    assert [kept.suffix for kept in (tmp_path / "kept").iterdir()] == [WEIGHTS]


def test_what_cannot_be_copied_is_read_into_memory(tmp_path: Path, cache: WeightFiles) -> None:
    path = write(tmp_path / "model.bin")
    (tmp_path / "kept").write_text("a file where the folder is to be")
    read = read_archive(path, cache)
    assert not is_mapped(read["a.weight"])
    assert read == read_archive(path)
    assert read.digest == digest_of(path)


@pytest.mark.parametrize("place", [100, -5])
def test_a_copy_of_a_damaged_archive_is_refused(tmp_path: Path, cache: WeightFiles, place: int) -> None:
    path = write(tmp_path / "model.bin")
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(ArchiveError) as plain:
        read_archive(path)
    with pytest.raises(ArchiveError) as kept:
        read_archive(path, cache)
    assert str(kept.value) == str(plain.value)
    assert list((tmp_path / "kept").iterdir()) == []


def test_what_is_mapped_stays_when_the_models_file_changes(tmp_path: Path, cache: WeightFiles) -> None:
    path = write(tmp_path / "model.bin")
    read_archive(path, cache)
    mapped = read_archive(path, cache)
    write(tmp_path / "other.bin", -BIG)
    path.write_bytes((tmp_path / "other.bin").read_bytes())
    np.testing.assert_array_equal(numbers(read_archive(path, cache)), -BIG)
    path.write_bytes(b"")
    for kept in (tmp_path / "kept").iterdir():
        kept.unlink()
    release_pages(mapped["a.weight"])
    np.testing.assert_array_equal(numbers(mapped), BIG)
    with pytest.raises(ArchiveError, match="truncated to 0 bytes"):
        read_archive(path, cache)


@pytest.mark.parametrize("place", [0, 33, 60, -200_000, None])
def test_a_file_that_is_damaged_is_not_used(tmp_path: Path, cache: WeightFiles, place: int | None) -> None:
    path = write(tmp_path / "model.bin")
    read_archive(path, cache)
    (kept,) = (tmp_path / "kept").glob(f"*{WEIGHTS}")
    content = bytearray(kept.read_bytes())
    if place is None:
        content = content[:-100_000]
    else:
        content[place] ^= 1
    kept.write_bytes(content)
    assert cache.load(digest_of(path)) is None
    np.testing.assert_array_equal(numbers(read_archive(path, cache)), BIG)
    assert cache.load(digest_of(path)) is not None  # it was written again


def test_a_file_that_others_may_write_to_is_not_used(tmp_path: Path, cache: WeightFiles) -> None:
    path = write(tmp_path / "model.bin")
    read_archive(path, cache)
    (kept,) = (tmp_path / "kept").glob(f"*{WEIGHTS}")
    kept.chmod(0o666)
    assert cache.load(digest_of(path)) is None


def test_small_archives_and_stores_that_are_off_keep_nothing(
    tmp_path: Path, cache: WeightFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "model.bin")
    off = WeightFiles(CodeStore(None))
    assert not off.is_on
    assert read_archive(path, off) == read_archive(path, off)
    monkeypatch.setattr(archive, "LEAST_KEPT", 1 << 30)
    read_archive(path, cache)
    assert not (tmp_path / "kept").exists()


def test_letting_go_takes_nothing_from_memory_of_the_process() -> None:
    kept = BIG.copy()
    release_pages(kept)
    release_pages(kept.data)
    np.testing.assert_array_equal(kept, BIG)


def test_a_graph_computes_the_same_of_mapped_weights(
    cache: WeightFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_module, "entry_cache", lambda _: cache)
    x = np.random.default_rng(1).standard_normal((1, 3, 64, 64)).astype(np.float32)
    results = []
    for _ in range(2):
        graph = RuntimeGraph(NETWORK, backend="native", verify="always")
        graph.build()
        results.append(graph.forward([x])[0])
    np.testing.assert_array_equal(results[1], results[0])
    weight = next(operator for operator in graph.operators if "weight" in operator.attrs).attrs["weight"]
    assert is_mapped(weight.data)


def test_mapped_entries_show_the_digest_of_the_archive_as_read_ones_do(
    tmp_path: Path, cache: WeightFiles
) -> None:
    path = write(tmp_path / "model.bin")
    wanted = hashlib.sha256(path.read_bytes()).hexdigest()
    assert [read_archive(path, cache).digest for _ in range(2)] == [wanted, wanted]
    assert read_archive(path).digest is None


def test_identities_of_mapped_weights_are_read_not_computed(tmp_path: Path, cache: WeightFiles) -> None:
    path = write(tmp_path / "model.bin")
    for entries in (read_archive(path, cache), read_archive(path, cache)):
        mapped = numbers(entries)
        assert sha256_of(mapped) == hashlib.sha256(BIG.tobytes()).hexdigest()
        assert identity_of(mapped.reshape(100, 1000)) == identity_of(BIG.reshape(100, 1000))
        assert identity_of(mapped) != identity_of(mapped[1:]) == identity_of(BIG[1:])  # a part has its own
        assert sha256_of(mapped[1:]) is sha256_of(mapped.reshape(100, 1000).T) is sha256_of(BIG) is None


def test_files_of_an_earlier_version_are_written_again(tmp_path: Path, cache: WeightFiles) -> None:
    path = write(tmp_path / "model.bin")
    read_archive(path, cache)
    (kept,) = (tmp_path / "kept").iterdir()
    text = json.dumps([["a.weight", BIG.nbytes, 0]]).encode()
    head = hashlib.sha256(text).digest() + len(text).to_bytes(8, "little") + text
    kept.write_bytes(head + bytes(-len(head) % ALIGNMENT) + BIG.tobytes())
    assert cache.load(digest_of(path)) is None
    np.testing.assert_array_equal(numbers(read_archive(path, cache)), BIG)
    assert cache.load(digest_of(path)) is not None


def check_same(found: QuantizedWeights, wanted: QuantizedWeights) -> None:
    np.testing.assert_array_equal(found.integers, wanted.integers, strict=True)
    np.testing.assert_array_equal(found.scales, wanted.scales, strict=True)


def test_integers_are_those_of_the_weights_and_mapped(
    cache: WeightFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = quantize_weights(WEIGHT)
    first = cache.quantize(WEIGHT)
    monkeypatch.delattr(module, "quantize_weights")  # the second time it is not asked
    for found in (first, cache.quantize(WEIGHT.copy())):
        check_same(found, wanted)
        assert is_mapped(found.integers)


@pytest.mark.parametrize("other", [-WEIGHT, WEIGHT.reshape(64, 32, 9), np.nextafter(WEIGHT, np.float32(9))])
def test_other_weights_have_integers_of_their_own(cache: WeightFiles, other: Array) -> None:
    cache.quantize(WEIGHT)
    check_same(cache.quantize(other), quantize_weights(other))


def test_what_is_damaged_is_made_again(cache: WeightFiles, tmp_path: Path) -> None:
    cache.quantize(WEIGHT)
    (kept,) = (tmp_path / "kept").iterdir()
    content = bytearray(kept.read_bytes())
    content[5000] ^= 1
    kept.write_bytes(content)
    check_same(cache.quantize(WEIGHT), quantize_weights(WEIGHT))


def test_weights_that_are_not_finite_are_refused_each_time(cache: WeightFiles, tmp_path: Path) -> None:
    weight = WEIGHT.copy()
    weight[3, 2, 1, 0] = np.inf
    for _ in range(2):
        with pytest.raises(BuildError, match="not all finite"):
            cache.quantize(weight)
    assert not (tmp_path / "kept").exists()


def test_few_weights_and_stores_that_are_off_keep_nothing(cache: WeightFiles, tmp_path: Path) -> None:
    check_same(cache.quantize(WEIGHT[:2]), quantize_weights(WEIGHT[:2]))
    assert not (tmp_path / "kept").exists()
    off = WeightFiles(CodeStore(None))
    check_same(off.quantize(WEIGHT), quantize_weights(WEIGHT))


def test_a_graph_computes_the_same_of_mapped_integers(
    cache: WeightFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "weight_files", lambda: cache)
    param = write_model(tmp_path, MODEL, {"conv.weight": WEIGHT})
    x = np.random.default_rng(1).standard_normal((1, 32, 6, 7)).astype(np.float32)
    quantization = Quantization({"conv": Activation.STATIC}, {"x": TensorScale(0.02, 100)})
    results = []
    for backend in ("numpy", "native", "native"):
        graph = RuntimeGraph(param, backend=backend, quantization=quantization, verify="always")
        graph.build()
        results.append(graph.forward([x])[0])
    assert list((tmp_path / "kept").iterdir())
    np.testing.assert_array_equal(results[2], results[1])
    np.testing.assert_array_equal(results[1], results[0])
