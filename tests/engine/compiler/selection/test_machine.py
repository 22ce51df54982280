"""The cost model: what is read of the host, and that estimates rank kernels as they have to."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.compiler.contraction.shapes import ConvShape
from engine.compiler.emit.target import target_named
from engine.compiler.memory.weights import PackedStore
from engine.compiler.selection import cost, machine
from engine.compiler.selection.call import BF16, Selector
from engine.compiler.selection.machine import Effort, Machine
from engine.precision import Precision

DEEP = ConvShape(images=1, size=(7, 7), channels=512, filters=512, kernel=(3, 3))
LARGE = ConvShape(images=1, size=(56, 56), channels=64, filters=64, kernel=(3, 3))
AVX512 = Machine(target_named("avx512"))


@pytest.mark.parametrize(
    ("size", "expected"),
    [("1024K", 1 << 20), ("512K", 1 << 19), ("64K", 1 << 18), ("98304K", 1 << 21), ("unknown", 1 << 20)],
)
def test_cache_of_a_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str, expected: int) -> None:
    monkeypatch.setattr(machine, "_CPU", tmp_path)
    for index, (level, text) in enumerate((("1", "48K"), ("1", "32K"), ("2", size), ("3", "32768K"))):
        folder = tmp_path / f"cache/index{index}"
        folder.mkdir(parents=True)
        (folder / "level").write_text(f"{level}\n")
        (folder / "size").write_text(f"{text}\n")
    assert machine._own_cache() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model name : x\nbogomips\t: 5192.24\n", 2.6),
        ("bogomips\t: 6999.82\n", 3.5),
        ("bogomips\t: 50.00\n", 2.6),  # not believed
        ("BogoMIPS\t: 7000.00\n", 2.6),  # ARM's, which counts something else
    ],
)
def test_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: float) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    monkeypatch.setattr(machine, "_CPU_INFO", tmp_path / "cpuinfo")
    assert machine._base_clock() == expected


def test_a_system_without_these_files_has_a_common_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_CPU", tmp_path / "none")
    monkeypatch.setattr(machine, "_CPU_INFO", tmp_path / "none")
    assert (machine._own_cache(), machine._base_clock()) == (1 << 20, 2.6)


def test_arithmetic_and_reading_overlap_where_weights_are_prefetched() -> None:
    effort = Effort(multiply_adds=1e6, weights=1e6)
    products = AVX512.time(replace(effort, weights=0))
    reading = AVX512.time(replace(effort, multiply_adds=0.0))
    assert max(products, reading) < AVX512.time(effort) < products + reading
    assert AVX512.time(replace(effort, prefetches=False)) == pytest.approx(products + reading)
    assert AVX512.time(replace(effort, moved=1e6)) > AVX512.time(effort)


def test_rates_follow_from_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wider vectors and instructions for short numbers are faster; a noisy measurement changes no choice."""
    rates = {
        name: Machine(target_named(name)).multiply_adds(Precision.F32) for name in ("avx512", "avx2", "sse")
    }
    assert rates["avx512"] == 2 * rates["avx2"] == 8 * rates["sse"]
    vnni = Machine(target_named("vnni")).multiply_adds(Precision.INT8)
    assert vnni > rates["avx512"] > AVX512.multiply_adds(Precision.INT8)
    for measured in (1.7, 2.0, 2.6):
        monkeypatch.setattr(machine, "bf16_speedup", lambda _, measured=measured: measured)
        assert Machine(target_named("bf16")).multiply_adds(Precision.BF16) == 2 * rates["avx512"]


def test_winograd_pays_where_pixels_are_many_and_fewer_weights_where_they_are_few() -> None:
    def times(shape: ConvShape) -> dict[str, float]:
        efforts = {
            "direct": cost.plain(AVX512, shape, prefetches=False),
            "streamed": cost.streamed(AVX512, shape),
            "transformed": cost.winograd(AVX512, shape),
            "compact": cost.compact_winograd(AVX512, shape),
        }
        return {name: AVX512.time(effort) for name, effort in efforts.items()}

    large, deep = times(LARGE), times(DEEP)
    assert min(large, key=large.__getitem__) == "transformed"
    assert large["direct"] < large["streamed"]
    assert min(deep, key=deep.__getitem__) == "compact"
    assert deep["streamed"] < deep["direct"]


def test_a_larger_cache_makes_more_transformed_weights_affordable() -> None:
    small, large = (replace(AVX512, cache=size) for size in (1 << 18, 1 << 22))
    effort = cost.winograd(AVX512, DEEP)
    assert large.time(effort) < small.time(effort)


def test_matrix_registers_need_work_to_pay() -> None:
    amx = Machine(target_named("amx"))
    assert amx.has_int8_tiles
    assert not AVX512.has_int8_tiles
    few = ConvShape(images=1, size=(1, 1), channels=8, filters=16)
    assert amx.time(cost.int8_tiles(amx, LARGE)) < amx.time(cost.int8(amx, LARGE))
    assert amx.time(cost.int8_tiles(amx, few)) > amx.time(cost.int8(amx, few))


def test_the_candidate_with_the_least_time_is_chosen_and_all_are_recorded() -> None:
    selector = Selector(target_named("avx512"), 1, PackedStore())
    slow, fast = Effort(multiply_adds=2e6), Effort(multiply_adds=1e6)
    assert selector.choose({"a": slow, "b": fast}) == "b"
    assert [(each.name, each.is_chosen) for each in selector.candidates] == [("a", False), ("b", True)]
    assert selector.candidates[0].estimate_us == pytest.approx(2 * selector.candidates[1].estimate_us)


def test_bf16_is_chosen_by_one_item_of_the_batch() -> None:
    selector = Selector(target_named("avx512"), 1, PackedStore())
    slow, fast = Effort(multiply_adds=2e6), Effort(multiply_adds=1e6)
    assert selector.choose({"direct": fast, BF16: slow}, {"direct": slow, BF16: fast}) == BF16
    assert selector.choose({"direct": slow, BF16: fast}, {"direct": fast, BF16: slow}) == "direct"
