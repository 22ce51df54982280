"""The response of `GET /models/{name}/quantization`."""

from typing import Any, Literal, Self

from pydantic import BaseModel, Field

from engine import LayerFigures, OutputFigures, Quantization, QuantizationFigures, RunFigures
from service.config.choices import PrecisionName
from service.repository.loaded_model import LoadedModel

_NOT_FINITE = "null where it is not finite, as where nothing differs"


class OutputFiguresView(BaseModel):
    """How outputs compare with those of float32 on the examples."""

    agreement: float = Field(description="part of the rows whose largest element stands at the same place")
    error: float | None = Field(
        description="norm of the difference over that of the output, the largest of all outputs"
    )
    ratio_db: float | None = Field(description=f"ratio of signal to noise, the least; {_NOT_FINITE}")

    @classmethod
    def of(cls, figures: OutputFigures) -> Self:
        """Describe figures."""
        return cls(agreement=figures.agreement, error=figures.error, ratio_db=figures.ratio)


class LayerFiguresView(BaseModel):
    """What int8 does to a layer, measured by `kuiper quantize` on the machine that it ran on."""

    ratio_db: float | None = Field(
        description=f"ratio of signal to noise of the layer's result, all layers in int8; {_NOT_FINITE}"
    )
    cosine: float = Field(description="of the angle between that result and float32's")
    f32_ms: float = Field(description="time of the kernel in float32; the median of a few runs, as all times")
    bf16_ms: float = Field(description="in bfloat16, where the layer would gain by that, else in float32")
    int8_ms: float = Field(description="in int8")
    alone: OutputFiguresView = Field(description="the model's outputs where this layer alone is in int8")

    @classmethod
    def of(cls, figures: LayerFigures) -> Self:
        """Describe figures."""
        return cls(
            ratio_db=figures.ratio,
            cosine=figures.cosine,
            f32_ms=figures.f32_us / 1000,
            bf16_ms=figures.bf16_us / 1000,
            int8_ms=figures.int8_us / 1000,
            alone=OutputFiguresView.of(figures.alone),
        )


class QuantizedLayerView(BaseModel):
    """A layer that can be computed in int8."""

    name: str
    type: str | None = Field(description="null where the served model has no such operator")
    input: Literal["static", "dynamic"] | None = Field(
        description="where the scale of its input comes from; null for a layer that is kept in float32"
    )
    serves: PrecisionName | None = Field(description="what it is computed in now, as in `GET /graph`")
    figures: LayerFiguresView | None = Field(description="null in files of which nothing was measured")


class RunFiguresView(BaseModel):
    """What a run took in each precision when `kuiper quantize` measured it, the least of a few."""

    processor: str = Field(description="what it was measured on, and with how many threads")
    f32_ms: float
    bf16_ms: float
    int8_ms: float = Field(description="as the file has the model computed")

    @classmethod
    def of(cls, figures: RunFigures) -> Self:
        """Describe figures."""
        return cls(
            processor=figures.processor,
            f32_ms=figures.f32_us / 1000,
            bf16_ms=figures.bf16_us / 1000,
            int8_ms=figures.int8_us / 1000,
        )


class CalibrationView(BaseModel):
    """What scales were determined from."""

    data: str = Field(description="name of the file or folder of examples")
    examples: int
    method: str


class QuantizationView(BaseModel):
    """What `kuiper quantize` wrote beside a model."""

    model: str
    version: str
    precision: PrecisionName = Field(description="what the model was asked to compute in when it was loaded")
    calibration: CalibrationView | None
    outputs: OutputFiguresView | None = Field(description="as the file has the model computed")
    runs: RunFiguresView | None = Field(description="null where that was not measured")
    layers: list[QuantizedLayerView] = Field(description="in the order in which they run")

    @classmethod
    def of(cls, model: LoadedModel, quantization: Quantization) -> Self:
        """Describe what the file beside a model says."""
        figures, calibration = quantization.figures, quantization.calibration
        types = {operator.name: operator.type for operator in model.graph.operators}
        served: dict[str, Any] = {name: precision.value for name, precision in model.graph.precisions.items()}
        names = quantization.layers if figures is None else dict(figures.layers) | dict(quantization.layers)
        return cls(
            model=model.name,
            version=model.version,
            precision=model.graph.precision.value,
            calibration=None
            if calibration is None
            else CalibrationView(
                data=calibration.data, examples=calibration.examples, method=calibration.method
            ),
            outputs=None if figures is None else OutputFiguresView.of(figures.outputs),
            runs=None if figures is None or figures.runs is None else RunFiguresView.of(figures.runs),
            layers=[
                QuantizedLayerView(
                    name=name,
                    type=types.get(name),
                    input=None if name not in quantization.layers else quantization.layers[name].value,
                    serves=served.get(name),
                    figures=None if figures is None else _of_layer(figures, name),
                )
                for name in names
            ],
        )


def _of_layer(figures: QuantizationFigures, name: str) -> LayerFiguresView | None:
    found = figures.layers.get(name)
    return None if found is None else LayerFiguresView.of(found)
