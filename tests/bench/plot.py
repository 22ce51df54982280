"""Draws a report as an SVG: per model one bar for each runtime, its time over onnxruntime's.

Run: python -m tests.bench.plot [--from FILE]       (writes docs/bench/plot.svg)
"""

import argparse
from html import escape
from pathlib import Path

from tests.bench.contenders import BASE
from tests.bench.models import MODELS
from tests.bench.ratios import to_base
from tests.bench.results import SAVED, Report, from_json

PLOT = Path("docs/bench/plot.svg")
COLOURS = {
    "native": "#d1495b",
    BASE: "#30638e",
    "openvino": "#7a9e9f",
    "ncnn": "#edae49",
    "torch": "#8d6a9f",
}
"""Who is drawn, in order. The numpy layers would make all other bars small."""
MOST = 3.0
"""Bars end here; a longer one says how long it would be."""
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 900, 210, 40, 28, 24
LEGEND = 30


def draw(report: Report) -> str:
    """Return the SVG, one panel for each number of threads below the other."""
    panels = [
        _panel(report, threads, LEGEND + index * HEIGHT) for index, threads in enumerate(report.threads)
    ]
    height = LEGEND + HEIGHT * len(panels)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="12">'
    )
    background = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join(
        [head, background, *_legend(), *(line for panel in panels for line in panel), "</svg>\n"]
    )


def _legend() -> list[str]:
    lines = []
    for index, (name, colour) in enumerate(COLOURS.items()):
        x = LEFT + index * 120
        lines.append(f'<rect x="{x}" y="9" width="12" height="12" fill="{colour}"/>')
        lines.append(_text(x + 17, 19, "kuiper native" if name == "native" else name, "start"))
    return lines


def _panel(report: Report, threads: int, top: int) -> list[str]:
    base = top + HEIGHT - BOTTOM
    scale = (HEIGHT - TOP - BOTTOM) / MOST
    plural = "s" if threads > 1 else ""
    lines = [_text(LEFT, top + 12, f"time over {BASE}'s, {threads} thread{plural}; less is better", "start")]
    for level in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0):
        y = base - level * scale
        colour = "#30638e" if level == 1 else "#dddddd"
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}"/>')
        lines.append(_text(LEFT - 6, y + 4, f"{level:g}", "end"))
    room = (WIDTH - LEFT - 10) / max(1, len(report.models))
    for index, model in enumerate(report.models):
        left = LEFT + index * room
        lines.append(_text(left + room / 2, base + 16, MODELS[model].title.split(",")[0], "middle"))
        lines += _bars(report, model, threads, left + room * 0.06, room * 0.88, base, scale)
    return lines


def _bars(
    report: Report, model: str, threads: int, left: float, width: float, base: float, scale: float
) -> list[str]:
    results = report.find(model, threads)
    step = width / len(COLOURS)
    lines = []
    for index, (name, colour) in enumerate(COLOURS.items()):
        ratio = to_base(results, name)
        x = left + index * step
        if ratio is None:
            lines.append(_text(x + step / 2, base - 4, "-", "middle", 9))
            continue
        height = min(ratio, MOST) * scale
        lines.append(
            f'<rect x="{x:.1f}" y="{base - height:.1f}" width="{step - 2:.1f}" height="{height:.1f}" fill="{colour}"/>'
        )
        lines.append(_text(x + step / 2 - 1, base - height - 3, f"{ratio:.2f}", "middle", 9))
    return lines


def _text(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text, quote=False)}</text>'


def main() -> None:
    """Draw the saved results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--from", dest="source", type=Path, default=SAVED, metavar="FILE")
    arguments = parser.parse_args()
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    PLOT.write_text(draw(from_json(arguments.source.read_text())))


if __name__ == "__main__":
    main()
