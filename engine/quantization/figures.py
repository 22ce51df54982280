"""Measurements of `kuiper quantize`, layer by layer, in the file beside the model.

"figures": {
"outputs": {"agreement": 0.99, "error": 0.012, "ratio": 38.1},
"layers": {
"conv1": {"type": "nn.Conv2d", "activation": "static", "quantized": true, "ratio": 31.5, "cosine": 0.9997,
"f32_us": 210.5, "bf16_us": 120.0, "int8_us": 71.2,
"alone": {"agreement": 1.0, "error": 0.004, "ratio": 47.9}}
},
"runs": {"processor": "znver5, 1 thread", "f32_us": 950.0, "bf16_us": 610.0, "int8_us": 402.3}
}
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from engine.quantization.document import Node


@dataclass(frozen=True, slots=True)
class OutputFigures:
    """How a model's outputs compare with those of float32 on the examples.

    Attributes:
        agreement: part of the rows of the first output whose largest element stands at the same place.
        error: norm of the difference over that of the reference, the largest of all outputs; None for no number.
        ratio: least signal-to-noise ratio of all outputs in decibels; None where it is not finite, as where there is
            no difference.
    """

    agreement: float
    error: float | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class LayerFigures:
    """Effect of int8 on one layer.

    Attributes:
        type: PNNX type of the operator.
        activation: "static" or "dynamic": where the scale of its input comes from.
        quantized: whether it is computed in int8; False for one in float32.
        ratio: signal-to-noise ratio of its result against float32, all layers in int8, in decibels; None where it is
            not finite.
        cosine: cosine of the angle between the two results, taken as vectors.
        f32_us: microseconds of its kernel in float32, as all times here the median of a few runs.
        bf16_us: the same in bfloat16, where it would gain by that.
        int8_us: the same in int8.
        alone: the model's outputs where this layer alone is in int8.
    """

    type: str
    activation: str
    quantized: bool
    ratio: float | None
    cosine: float
    f32_us: float
    bf16_us: float
    int8_us: float
    alone: OutputFigures


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Time of a run of the model in each precision, in microseconds: the minimum of a few interleaved runs.

    Attributes:
        processor: processor and number of threads of the measurement, as in `engine.backend.describe_processor`.
        f32_us: in float32.
        bf16_us: in bfloat16, all layers in it that would gain by it.
        int8_us: in int8, some layers in float32.
    """

    processor: str
    f32_us: float
    bf16_us: float
    int8_us: float

    @property
    def is_int8_fastest(self) -> bool:
        """Whether no other precision was faster."""
        return self.int8_us <= min(self.f32_us, self.bf16_us)


@dataclass(frozen=True, slots=True)
class QuantizationFigures:
    """All figures of a model.

    Attributes:
        outputs: difference of the outputs in int8, some layers in float32.
        layers: operator -> its figures, in the order in which layers run.
        runs: times of runs; None if not measured.
    """

    outputs: OutputFigures
    layers: Mapping[str, LayerFigures]
    runs: RunFigures | None = None


def finite(number: float) -> float | None:
    """Return a number as JSON can hold it: None for one that is not finite."""
    return float(number) if math.isfinite(number) else None


def figures_document(figures: QuantizationFigures) -> dict[str, Any]:
    """Return figures in the form of the file."""
    layers = {name: asdict(layer) for name, layer in figures.layers.items()}
    document = {"outputs": asdict(figures.outputs), "layers": layers}
    return document if figures.runs is None else document | {"runs": asdict(figures.runs)}


def read_figures(node: Node) -> QuantizationFigures:
    """Return the figures of a file.

    Raises:
        QuantizationError: something is missing or of the wrong kind; names the place.
    """
    node.items(("outputs", "layers", "runs"))
    layers = node.mapping("layers")
    runs = _runs(node.mapping("runs")) if node.has("runs") else None
    return QuantizationFigures(_outputs(node.mapping("outputs")), layers.each(_layer), runs)


def _runs(node: Node) -> RunFigures:
    node.items(tuple(RunFigures.__dataclass_fields__))
    return RunFigures(
        processor=node.text("processor"),
        f32_us=node.number("f32_us", 0),
        bf16_us=node.number("bf16_us", 0),
        int8_us=node.number("int8_us", 0),
    )


def _outputs(node: Node) -> OutputFigures:
    node.items(("agreement", "error", "ratio"))
    return OutputFigures(node.number("agreement", 0, 1), node.maybe("error"), node.maybe("ratio"))


def _layer(layers: Node, name: str) -> LayerFigures:
    node = layers.mapping(name)
    node.items(tuple(LayerFigures.__dataclass_fields__))
    return LayerFigures(
        type=node.text("type"),
        activation=node.text("activation"),
        quantized=node.flag("quantized"),
        ratio=node.maybe("ratio"),
        cosine=node.number("cosine", -1.001, 1.001),
        f32_us=node.number("f32_us", 0),
        bf16_us=node.number("bf16_us", 0),
        int8_us=node.number("int8_us", 0),
        alone=_outputs(node.mapping("alone")),
    )
