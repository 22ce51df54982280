"""The plot of a report."""

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from tests.bench import plot
from tests.bench.ratios import to_base
from tests.bench.results import SAVED, BenchReport, from_json
from tests.bench.sample_report import sample_report

ROOT = Path(__file__).parents[2]
LABEL = re.compile(r"n/a|\d+\.\d\d")
TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.fixture
def report() -> BenchReport:
    return sample_report()


def heights(axes: Axes, runtime: str) -> list[float]:
    """Return the heights of a runtime's bars, from left to right."""
    bars = [bar for bar in axes.patches if to_hex(bar.get_facecolor()) == plot.COLOURS[runtime]]
    return [float(bar.get_height()) for bar in bars]  # type: ignore[attr-defined]  # all patches are rectangles


def labels(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def svg_texts(svg: bytes) -> list[str | None]:
    return [element.text for element in ElementTree.fromstring(svg).iter(TEXT)]


def test_each_number_of_threads_has_a_panel(report: BenchReport) -> None:
    one, two = plot.draw(report).axes
    assert one.get_title(loc="left") == "time relative to onnxruntime's, 1 thread; less is better"
    assert two.get_title(loc="left") == "time relative to onnxruntime's, 2 threads; less is better"
    assert [tick.get_text() for tick in one.get_xticklabels()] == [
        "ResNet18 224²",
        "UNet 256²",
        "small ViT 224²",
    ]


def test_bars_are_as_high_as_the_ratios_and_end_at_the_longest(report: BenchReport) -> None:
    for axes in plot.draw(report).axes:
        assert heights(axes, "native") == pytest.approx([0.8, 0.8, plot.LONGEST])
        assert heights(axes, "openvino") == pytest.approx([1.6, 0.5, 1.0])
        assert heights(axes, "ncnn") == [0.0, 0.0, 0.0]


def test_labels_show_the_ratio_of_bars_that_are_cut_off_and_that_some_are_missing(
    report: BenchReport,
) -> None:
    for axes in plot.draw(report).axes:
        assert labels(axes).count("50.00") == 1
        assert labels(axes).count("n/a") == 3
        assert len(labels(axes)) == 3 * len(plot.COLOURS)


def test_bars_do_not_overlap(report: BenchReport) -> None:
    axes = plot.draw(report).axes[0]
    spans = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches)  # type: ignore[attr-defined]
    assert all(end < start for (_, end), (start, _) in pairwise(spans))


def test_same_report_gives_the_same_bytes(report: BenchReport, tmp_path: Path) -> None:
    files = tmp_path / "one.svg", tmp_path / "two.svg"
    for file in files:
        plot.write(report, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert "Kuiper Serve" in svg_texts(files[0].read_bytes())


def test_kept_plot_shows_the_kept_figures() -> None:
    """Compared as text: other versions of matplotlib may place it elsewhere."""
    kept = from_json((ROOT / SAVED).read_text())
    ratios = [
        to_base(kept.find(model, threads), name)
        for threads in kept.threads
        for name in plot.COLOURS
        for model in kept.models
    ]
    wanted = ["n/a" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
    shown = [text or "" for text in svg_texts((ROOT / plot.PLOT).read_bytes())]
    assert [text for text in shown if LABEL.fullmatch(text)] == wanted
