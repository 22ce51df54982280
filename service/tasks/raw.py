"""Models whose outputs are answered as they are."""

from collections.abc import Sequence

from engine import Port
from engine.dtypes import Array
from service.config.model_config import ModelConfig
from service.tasks.prediction import Prediction


def check(config: ModelConfig, outputs: Sequence[Port]) -> None:
    """Accept any outputs."""
    del config, outputs


def predict(
    config: ModelConfig, ports: Sequence[Port], outputs: Sequence[Array], top_k: int | None = None
) -> list[list[Prediction]] | None:
    """Return None: there is nothing to predict."""
    del config, ports, outputs, top_k
    return None
