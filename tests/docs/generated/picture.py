"""The picture of the README: one request to the digits, its response, and what every layer did."""

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from tests.docs.generated.application import DIGIT
from tests.docs.generated.response import load

WIDTH, ROW, TOP = 960, 22, 62
NAMES, BARS, RIGHT = 300, 560, 900
"""Where names of layers begin, and where the bars begin and end."""
INK, PALE, GRID, NATIVE, BEST = "#24292f", "#6e7781", "#e4e7eb", "#30638e", "#d1495b"
TIMES = "\N{MULTIPLICATION SIGN}"
_QUIET = ("pnnx.Input", "pnnx.Output")


@dataclass
class Canvas:
    """An SVG under construction, in pixels.

    Attributes:
        root: the SVG element.
    """

    root: Element = field(default_factory=lambda: Element("svg", xmlns="http://www.w3.org/2000/svg"))

    def text(self, x: float, y: float, text: str, size: int = 13, colour: str = INK, **more: str) -> None:
        """Write a text whose base line begins at x, y; `anchor` and `weight` are SVG's."""
        names = {"anchor": "text-anchor", "weight": "font-weight"}
        chosen = {names[key]: value for key, value in more.items()}
        place = {"x": f"{x:g}", "y": f"{y:g}", "font-size": str(size), "fill": colour}
        SubElement(self.root, "text", place | chosen).text = text

    def bar(self, x: float, y: float, width: float, height: float, colour: str, radius: int = 2) -> None:
        """Draw a filled rectangle."""
        numbers = {"x": x, "y": y, "width": width, "height": height, "rx": radius}
        SubElement(
            self.root, "rect", {key: f"{value:.1f}" for key, value in numbers.items()} | {"fill": colour}
        )

    def picture(self, x: float, y: float, side: float, png: bytes) -> None:
        """Show an image without smoothing its pixels."""
        href = f"data:image/png;base64,{b64encode(png).decode()}"
        place = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{side:g}", "height": f"{side:g}", "href": href}
        SubElement(self.root, "image", place | {"style": "image-rendering: pixelated"})


def render() -> str:
    """Return the SVG."""
    response = load()
    layers = [layer for layer in response["trace"]["layers"] if _is_shown(layer)]
    height = TOP + ROW * len(layers) + 30
    canvas = Canvas()
    canvas.root.set("viewBox", f"0 0 {WIDTH} {height}")
    canvas.root.set("font-family", "ui-sans-serif, system-ui, sans-serif")
    SubElement(
        canvas.root, "title"
    ).text = "One request to the digits model: its response and the time of every layer"
    canvas.bar(0, 0, WIDTH, height, "#ffffff", 8)
    _draw_request(canvas, response)
    _draw_layers(canvas, layers)
    indent(canvas.root, " ")
    return tostring(canvas.root, encoding="unicode") + "\n"


def _is_shown(layer: dict[str, Any]) -> bool:
    return layer["fused_into"] is None and layer["type"] not in _QUIET


def _draw_request(canvas: Canvas, response: dict[str, Any]) -> None:
    canvas.text(28, 34, "POST /infer?model=digits", 14, weight="600")
    canvas.bar(27, 51, 142, 142, GRID)
    canvas.picture(28, 52, 140, DIGIT.read_bytes())
    canvas.text(28, 226, "predictions", 12, PALE)
    for index, prediction in enumerate(response["predictions"][0][:3]):
        y = 236 + index * 24
        canvas.text(28, y + 13, prediction["label"], 14, weight="600")
        canvas.bar(46, y + 1, 150, 14, GRID)
        canvas.bar(46, y + 1, 150 * prediction["probability"], 14, BEST)
        canvas.text(202, y + 13, f"{prediction['probability']:.1%}", 12)
    timing = response["timing"]
    canvas.text(28, 342, f"forward {timing['forward_ms']:.2f} ms of {timing['total_ms']:.2f} ms", 12, PALE)


def _draw_layers(canvas: Canvas, layers: list[dict[str, Any]]) -> None:
    start = layers[0]["start_ms"]
    end = max(layer["start_ms"] + layer["duration_ms"] for layer in layers)
    scale = (RIGHT - BARS) / (end - start)
    canvas.text(NAMES, 34, "trace: layer", 12, PALE)
    canvas.text(NAMES + 130, 34, "output", 12, PALE)
    canvas.text(BARS, 34, "time, µs", 12, PALE)
    for tenth in range(int((end - start) * 20) + 1):
        x = BARS + tenth / 20 * scale
        canvas.bar(x, TOP - 12, 1, ROW * len(layers) + 8, GRID, 0)
        canvas.text(x, TOP + ROW * len(layers) + 12, f"{tenth * 50}", 11, PALE, anchor="middle")
    for index, layer in enumerate(layers):
        y = TOP + index * ROW
        fused = f" +{len(layer['fused'])}" if layer["fused"] else ""
        canvas.text(NAMES, y + 5, layer["name"] + fused)
        canvas.text(NAMES + 130, y + 5, TIMES.join(map(str, layer["outputs"][0]["shape"])), 12, PALE)
        x, width = BARS + (layer["start_ms"] - start) * scale, max(layer["duration_ms"] * scale, 1.5)
        canvas.bar(x, y - 7, width, 14, NATIVE)
        canvas.text(x + width + 5, y + 5, f"{layer['duration_ms'] * 1e3:.1f}", 11, INK)
