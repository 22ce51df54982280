"""Quantization scheme of a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from engine.errors import BuildError
from engine.quantization.figures import QuantizationFigures
from engine.quantization.tensor_scale import TensorScale


class Activation(Enum):
    """Source of the scale of a layer's input."""

    STATIC = "static"
    """From calibration: one for the whole tensor, the same in every run."""
    DYNAMIC = "dynamic"
    """From each row itself, in every run: the largest magnitude of its elements."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Source of the scales.

    Attributes:
        data: name of the file or folder of examples.
        examples: number of examples.
        method: calibration method: "minmax", "percentile" or "mse".
        error: error on examples: norm of the difference from float32 over that of float32, the largest of all
            outputs; None where it was not measured.
    """

    data: str
    examples: int
    method: str
    error: float | None = None


@dataclass(frozen=True, slots=True)
class Quantization:
    """Quantization of a model: layers in int8, and scales of tensors; other layers are float32.

    Attributes:
        layers: operator -> where the scale of its input comes from, for the operators that multiply integers; by name
            as well: `static`, `dynamic`.
        tensors: operand -> its scale. The value of such an operand, if it is float32 and no input of the graph, is
            rounded to its quantized values for every reader, so that it may be stored as integers.
        calibration: source of the scales; None if a program chose them.
        figures: measurements; not part of the quantization itself.

    Raises:
        BuildError: there is no such activation.
    """

    layers: Mapping[str, Activation] = field(default_factory=dict)
    tensors: Mapping[str, TensorScale] = field(default_factory=dict)
    calibration: Calibration | None = None
    figures: QuantizationFigures | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        layers = {name: _choose_activation(name, wanted) for name, wanted in self.layers.items()}
        object.__setattr__(self, "layers", layers)


def _choose_activation(name: str, wanted: Activation | str) -> Activation:
    try:
        return Activation(wanted)
    except ValueError as error:
        names = ", ".join(item.value for item in Activation)
        problem = f"quantization: activation {wanted!r:.80} of {name} is unknown"
        raise BuildError(f"{problem}; expected one of {names}") from error
