"""Models without a task: their outputs are answered as they are."""

from collections.abc import Sequence

from engine import Array, Port
from service.config.model_config import ModelConfig
from service.tasks.task import Prediction, Task


class Raw(Task):
    """The default task, which makes no predictions."""

    name = "raw"

    def check(self, config: ModelConfig, outputs: Sequence[Port]) -> None:
        """Accept any outputs."""

    def predict(
        self, config: ModelConfig, ports: Sequence[Port], outputs: Sequence[Array], top_k: int | None
    ) -> Sequence[Sequence[Prediction]] | None:
        """Return None."""
        del config, ports, outputs, top_k
        return None
