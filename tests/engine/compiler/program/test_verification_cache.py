"""VerificationCache: which program need not be compared again, and all that makes it another one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import RuntimeGraph, registry
from engine.compiler.emit import code_store as stores
from engine.compiler.emit.code_store import VERIFIED, CodeStore
from engine.compiler.emit.jit import KernelCache
from engine.compiler.kernels.winograd import Winograd
from engine.compiler.program import checker, verifier
from engine.compiler.program import verification_cache as module
from engine.compiler.selection import Selector
from engine.dtypes import Array
from engine.quantization.scheme import Quantization
from engine.quantization.tensor_scale import TensorScale
from tests.engine.compiler.damage import damaged_at
from tests.engine.compiler.plans import weights_of
from tests.engine.compiler.program.test_verification import LINES, X, open_graph, shifted_bias

Comparisons = list[int]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CodeStore:
    """A store that graphs use as processes do that begin again: no code is at hand but what is kept."""
    made = CodeStore(tmp_path / "cache")
    monkeypatch.setattr(stores, "code_store", lambda: made)
    monkeypatch.setattr("engine.compiler.program.assembler.cache", KernelCache(made))
    return made


@pytest.fixture
def comparisons(monkeypatch: pytest.MonkeyPatch) -> Comparisons:
    """A number for each comparison that is made."""
    made: Comparisons = []
    verify = verifier.verify

    def count(*arguments: Any) -> Any:
        made.append(len(made))
        return verify(*arguments)

    monkeypatch.setattr(checker, "verify", count)
    return made


def entries(store: CodeStore) -> list[Path]:
    assert store._folder is not None
    return sorted(store._folder.glob(f"*{VERIFIED}"))


@pytest.mark.usefixtures("store")
def test_a_program_is_compared_once_for_all_processes(tmp_path: Path, comparisons: Comparisons) -> None:
    results = []
    for _ in range(3):
        graph = open_graph(tmp_path, *LINES)
        results.append(graph.forward([X])[0].tobytes())
    assert len(comparisons) == 1
    assert (graph.verification.checked, graph.verification.recalled) == (0, 1)
    assert len(set(results)) == 1


@pytest.mark.usefixtures("store")
def test_it_is_compared_in_each_where_that_is_wanted(tmp_path: Path, comparisons: Comparisons) -> None:
    open_graph(tmp_path, *LINES).forward([X])
    graph = open_graph(tmp_path, *LINES, verify="always")
    graph.forward([X])
    assert len(comparisons) == 2
    assert (graph.verification.checked, graph.verification.recalled) == (1, 0)


def other_weights(folder: Path) -> RuntimeGraph:
    weights = weights_of("\n".join(LINES))
    name = next(iter(weights))
    weights[name] = weights[name] + np.float32(1e-6)
    return open_graph(folder, *LINES, weights=weights)


def other_parameter(folder: Path) -> RuntimeGraph:
    return open_graph(folder, *(line.replace("dim=1", "dim=2") for line in LINES))


def other_threads(folder: Path) -> RuntimeGraph:
    return open_graph(folder, *LINES, threads=2)


def other_arithmetic(folder: Path) -> RuntimeGraph:
    return open_graph(folder, *LINES, quantization=Quantization({}, {"d": TensorScale(0.5, 128)}))


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("change", [other_weights, other_parameter, other_threads, other_arithmetic])
def test_what_is_different_is_compared(
    tmp_path: Path, comparisons: Comparisons, change: Callable[[Path], RuntimeGraph]
) -> None:
    open_graph(tmp_path, *LINES).forward([X])
    change(tmp_path).forward([X])
    assert len(comparisons) == 2


@pytest.mark.usefixtures("store")
def test_other_shapes_and_other_numpy_are_compared(
    tmp_path: Path, comparisons: Comparisons, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_graph(tmp_path, *LINES).forward([X])
    open_graph(tmp_path, *LINES).forward([X[:1]])
    monkeypatch.setattr(module, "code_key", lambda text: stores.code_key(text.replace(np.__version__, "9")))
    open_graph(tmp_path, *LINES).forward([X])
    assert len(comparisons) == 3


@pytest.mark.usefixtures("comparisons")
def test_another_engine_is_compared(
    tmp_path: Path, store: CodeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_graph(tmp_path, *LINES).forward([X])
    monkeypatch.setattr(stores, "_source_digest", lambda: "another")
    open_graph(tmp_path, *LINES).forward([X])
    assert len(entries(store)) == 2


def test_damaged_entries_are_not_believed(tmp_path: Path, store: CodeStore, comparisons: Comparisons) -> None:
    open_graph(tmp_path, *LINES).forward([X])
    (file,) = entries(store)
    sound = file.read_bytes()
    for damaged in (b"", sound[:-1], damaged_at(sound, -1), damaged_at(sound, 0)):
        before = len(comparisons)
        file.write_bytes(damaged)
        open_graph(tmp_path, *LINES).forward([X])
        assert len(comparisons) == before + 1
        assert entries(store) == [file]
        assert file.read_bytes() == sound


def test_the_entry_of_another_program_is_not_believed(
    tmp_path: Path, store: CodeStore, comparisons: Comparisons
) -> None:
    open_graph(tmp_path, *LINES).forward([X])
    (one,) = entries(store)
    open_graph(tmp_path, *LINES).forward([X[:1]])
    (other,) = set(entries(store)) - {one}
    other.write_bytes(one.read_bytes())
    open_graph(tmp_path, *LINES).forward([X[:1]])
    assert len(comparisons) == 3


def test_entries_that_others_may_have_set_are_not_believed(
    tmp_path: Path, store: CodeStore, comparisons: Comparisons
) -> None:
    open_graph(tmp_path, *LINES).forward([X])
    entries(store)[0].chmod(0o666)
    open_graph(tmp_path, *LINES).forward([X])
    assert len(comparisons) == 2


@pytest.mark.plants_a_mistake
def test_a_wrong_program_gets_no_entry(
    tmp_path: Path, store: CodeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Selector, "choose", lambda *_: "winograd")
    monkeypatch.setattr(Winograd, "pack", shifted_bias)
    for _ in range(2):
        graph = open_graph(tmp_path, *LINES)
        graph.forward([X])
        assert graph.verification.refused_count == 1
    assert not entries(store)


@pytest.mark.plants_a_mistake
def test_weights_that_are_packed_otherwise_are_compared(
    tmp_path: Path, store: CodeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Selector, "choose", lambda *_: "winograd")
    open_graph(tmp_path, *LINES).forward([X])
    assert len(entries(store)) == 1
    monkeypatch.setattr(Winograd, "pack", shifted_bias)
    graph = open_graph(tmp_path, *LINES)
    graph.forward([X])
    assert graph.verification.refused_count == 1


def test_programs_that_run_layers_from_outside_get_no_entry(tmp_path: Path, store: CodeStore) -> None:
    own = registry.copy()

    @own.layer("torch.cumprod", replace=True)
    def twice(input: Array, dim: int) -> Array:
        return np.cumsum(input, dim) * 2

    open_graph(tmp_path, *LINES, layers=own).forward([X])
    assert not entries(store)


def test_nothing_is_cached_where_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comparisons: Comparisons
) -> None:
    off = CodeStore(None)
    monkeypatch.setattr(stores, "code_store", lambda: off)
    monkeypatch.setattr("engine.compiler.program.assembler.cache", KernelCache(off))
    for _ in range(2):
        open_graph(tmp_path, *LINES).forward([X])
    assert len(comparisons) == 2
