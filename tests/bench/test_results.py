from dataclasses import replace

import numpy as np
import pytest

from tests.bench import report
from tests.bench.memory import parse_peak, peak_bytes
from tests.bench.models import MODELS, relative_error
from tests.bench.ratios import (
    fastest_peer,
    geometric_mean,
    means,
    to_base,
    to_fastest,
    to_same_precision,
)
from tests.bench.results import BenchReport, RuntimeResult, from_json, to_json
from tests.bench.runtimes import of_precisions
from tests.bench.sample_report import sample_report


@pytest.fixture
def found() -> BenchReport:
    return sample_report()


def test_geometric_mean_multiplies() -> None:
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert geometric_mean([0.1, 0.4, 0.2]) == pytest.approx(0.2)
    assert geometric_mean([]) is None


def test_ratios_are_to_onnxruntime_and_to_the_fastest_other_runtime(found: BenchReport) -> None:
    unet = found.find("unet", 1)
    best = fastest_peer(unet)
    assert best is not None
    assert best.runtime == "openvino"
    assert to_base(unet, "native") == pytest.approx(0.8)
    assert to_fastest(unet, "native") == pytest.approx(1.6)


def test_this_engine_is_no_peer_of_itself(found: BenchReport) -> None:
    best = fastest_peer(found.find("vit", 1))
    assert best is not None
    assert best.runtime == "onnxruntime"


def test_runtime_that_failed_has_no_ratio(found: BenchReport) -> None:
    assert to_base(found.find("unet", 1), "ncnn") is None
    assert to_base(found.find("unet", 1), "nobody") is None
    assert fastest_peer({}) is None


def test_mean_leaves_out_models_that_do_not_count(found: BenchReport) -> None:
    to_onnxruntime, to_best = means(found, 1, "native")
    assert to_onnxruntime == pytest.approx((0.8 * 0.8) ** 0.5)
    assert to_best == pytest.approx((0.8 * 1.6) ** 0.5)


def test_mean_needs_every_model(found: BenchReport) -> None:
    assert means(found, 1, "ncnn") == (None, None)


def test_json_gives_the_report_back(found: BenchReport) -> None:
    text = to_json(found)
    assert from_json(text) == found
    assert max(map(len, text.splitlines())) < 350
    assert len(text.splitlines()) > len(found.results)
    assert to_json(from_json(text)) == text


def test_json_of_a_report_without_measurements() -> None:
    empty = BenchReport({"processor": "x"}, 3)
    assert from_json(to_json(empty)) == empty


def test_json_rounds() -> None:
    report = BenchReport({}, 1, import_seconds=0.123456789)
    assert '"import_seconds": 0.12346' in to_json(report)


def test_summary_shows_times_ratios_failures_and_means(found: BenchReport) -> None:
    lines = [line.split("|") for line in report.summary(found).splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line[1:-1]] for line in lines]
    head, _, resnet18, unet, vit, mean = cells[:6]
    assert head[:2] == ["model", "native"]
    assert resnet18[1] == "8.00"
    assert resnet18[-1] == "onnxruntime, 0.80"
    assert unet[head.index("ncnn")] == "fails"
    assert resnet18[head.index("ncnn")] == ""
    assert vit[1] == "500.0"
    assert mean[0] == "geometric mean of 2, transformers aside"
    assert mean[1] == "0.80"
    assert mean[-1] == "1.13"
    assert len(cells) == 12


def test_full_report_has_every_figure(found: BenchReport) -> None:
    text = report.full(found)
    for part in (
        "20 rounds (7 of the slowest models)",
        "+1.0%",
        "120.0 requests",
        "1.20x",
        "read 0.050 s",
        "compile 0.70 s",
        "100 MiB",
        "0.20 s",
    ):
        assert part in text
    assert "no such <layer>" in text


def test_layers_keep_their_order_and_drop_the_fast_ones(found: BenchReport) -> None:
    both = report.layers(found.layers[0]).splitlines()
    assert both[0].startswith("ResNet18 224², one thread, all layers; machine's peak 400 GFLOP/s")
    assert "conv1" in both[4]
    assert "nn.Conv2d +2" in both[4]
    assert "25.0%" in both[4]
    assert "50%" in both[4]
    assert "pool" in both[5]
    slowest = report.layers(found.layers[0], 1)
    assert "the 1 slowest of 2 layers" in slowest
    assert "pool" in slowest
    assert "conv1" not in slowest


def test_table_lines_up() -> None:
    assert report.table(["a", "bb"], [["ccc", "d"]]) == "| a   | bb |\n| --- | -- |\n| ccc | d  |"


def test_peak_of_memory_is_read_from_the_status() -> None:
    assert parse_peak("VmPeak:\t  900 kB\nVmHWM:\t   200 kB\nVmRSS:\t 100 kB\n") == 200 * 1024
    assert parse_peak("VmPeak:\t  900 kB\n") is None
    peak = peak_bytes()
    assert peak is None or peak > 2**20


def test_relative_error_of_outputs_that_are_not_finite_is_infinite() -> None:
    wanted = np.array([1.0, -4.0], np.float32)
    assert relative_error(np.array([1.0, -3.0], np.float32), wanted) == 0.25
    assert relative_error(np.array([np.nan, -4.0], np.float32), wanted) == float("inf")


def test_five_models_are_averaged() -> None:
    assert sum(model.is_averaged for model in MODELS.values()) == 5
    assert MODELS["vit"].input().dtype == np.float32
    assert MODELS["vit"].input().shape == (1, 3, 224, 224)


def test_precisions_are_compared_with_their_own_kind() -> None:
    times = {"native": 0.010, "openvino": 0.020, "native-bf16": 0.003, "openvino-bf16": 0.004}
    results = {name: RuntimeResult("vit", 1, name, seconds, None) for name, seconds in times.items()}
    assert to_same_precision(results, "bf16") == pytest.approx(0.75)
    assert to_same_precision(results, "f32") == pytest.approx(0.5)
    assert to_same_precision({"native-bf16": results["native-bf16"]}, "bf16") is None
    assert of_precisions(["bf16"]) == ["native-bf16", "openvino-bf16"]
    assert fastest_peer(results) is results["openvino"]


def test_each_precision_has_a_table_of_its_own(found: BenchReport) -> None:
    times = {"native-int8": 0.002, "onnxruntime-int8": 0.004, "openvino-int8": None}
    more = [RuntimeResult("resnet18", 1, name, seconds, None, rounds=20) for name, seconds in times.items()]
    text = report.summary(replace(found, results=(*found.results, *more)))
    assert text.count("int8, median ms") == 1
    assert "bf16" not in text
    plain, rounded = text.split("One thread, int8, median ms")
    assert "int8" not in plain
    cells = next(line for line in rounded.splitlines() if "ResNet18" in line).split("|")[2:-1]
    assert [cell.strip() for cell in cells] == ["8.00", "2.00", "4.00", "fails", "0.50"]
    mean = next(line for line in rounded.splitlines() if "geometric mean of 1" in line).split("|")
    assert mean[-2].strip() == "0.50"
