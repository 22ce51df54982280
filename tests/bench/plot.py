"""Draws a report as an SVG: for each model a group of bars, one per runtime, of its time relative to onnxruntime's.

Run: python -m tests.bench.plot [--from FILE] [--to FILE]       (writes docs/bench/plot.svg; a .png where FILE ends so)

The same report gives the same bytes each time, so that a plot that is drawn again changes only where figures did.
"""

import argparse
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.bench.models import MODELS
from tests.bench.ratios import to_base
from tests.bench.results import SAVED, BenchReport, from_json
from tests.bench.runtimes import BASE

PLOT = Path("docs/bench/plot.svg")
COLOURS = {
    "native": "#d1495b",
    BASE: "#30638e",
    "openvino": "#7a9e9f",
    "ncnn": "#edae49",
    "torch": "#8d6a9f",
}
"""The runtimes that are drawn, in order. The reference layers would make all other bars small."""
TITLES = {"native": "Kuiper Serve"}
"""What the legend calls a runtime, where that is not its name."""
LONGEST = 3.0
"""The highest ratio of the axis. A longer bar is cut off there; its label still shows its ratio."""
WIDTH, PANEL_HEIGHT, LEGEND_HEIGHT = 9.0, 2.2, 0.4
"""Inches of the figure, of the panel for one number of threads, and of the legend above the panels."""
STYLE: Any = {
    "svg.fonttype": "none",  # text stays text: smaller than outlines, and can be searched
    "svg.hashsalt": "kuiper-serve",  # ids are made from this instead of at random
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 8,
}


@rc_context(STYLE)
def draw(report: BenchReport) -> Figure:
    """Return the figure: one panel for each number of threads, below one another, on white."""
    threads = report.threads
    height = LEGEND_HEIGHT + PANEL_HEIGHT * len(threads)
    # an opaque background: labels stay legible on pages of any colour
    figure = Figure(figsize=(WIDTH, height), layout="constrained", facecolor="white")
    panels = figure.subplots(len(threads), squeeze=False)[:, 0]
    for axes, count in zip(panels, threads, strict=True):
        _panel(axes, report, count)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=len(COLOURS), frameon=False)
    return figure


@rc_context(STYLE)
def write(report: BenchReport, path: Path) -> None:
    """Write the plot of a report, in the format that the file's name ends in, without date and version."""
    kind = path.suffix.removeprefix(".")
    metadata = {"Date": None, "Creator": None} if kind == "svg" else None
    target = BytesIO()
    draw(report).savefig(target, format=kind, metadata=metadata, dpi=150)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(target.getvalue())


def _panel(axes: Axes, report: BenchReport, threads: int) -> None:
    """Draw the groups of bars for one number of threads."""
    width = 0.84 / len(COLOURS)
    for position, (name, colour) in enumerate(COLOURS.items()):
        ratios = [to_base(report.find(model, threads), name) for model in report.models]
        centres = [group + (position - (len(COLOURS) - 1) / 2) * width for group in range(len(ratios))]
        heights = [min(ratio or 0.0, LONGEST) for ratio in ratios]
        bars = axes.bar(
            centres, heights, width * 0.92, color=colour, label=TITLES.get(name, name), clip_on=False
        )
        labels = ["n/a" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
        axes.bar_label(bars, labels, padding=1, fontsize=6)
    axes.axhline(1.0, color=COLOURS[BASE], linewidth=0.8, zorder=0.9)  # behind the labels
    axes.set_ylim(0, LONGEST * 1.06)  # room for the labels of the longest bars
    axes.set_xlim(-0.5, len(report.models) - 0.5)
    axes.set_xticks(range(len(report.models)), [MODELS[model].title.split(",")[0] for model in report.models])
    plural = "s" if threads > 1 else ""
    axes.set_title(
        f"time relative to {BASE}'s, {threads} thread{plural}; less is better", loc="left", fontsize=8
    )
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def main() -> None:
    """Draw the saved results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--from", dest="source", type=Path, default=SAVED, metavar="FILE")
    parser.add_argument("--to", dest="target", type=Path, default=PLOT, metavar="FILE")
    arguments = parser.parse_args()
    write(from_json(arguments.source.read_text()), arguments.target)


if __name__ == "__main__":
    main()
