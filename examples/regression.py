"""A task: models that estimate quantities, such as the width and the height of what an image shows.

task = "regression"

[regression]
names = ["width", "height"]     # of the columns of the first output
unit = "mm"                     # of all of them
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field

from engine import Array, Port
from service.config.model_config import FILE_NAME, ModelConfig, ModelConfigError
from service.config.task_keys import TaskKeys
from service.config.toml_table import TomlTable
from service.errors import ServiceError
from service.schemas import JsonNumber
from service.tasks import Prediction, Task, register_task


class RegressionConfig(TomlTable):
    """What the columns of the output are.

    Attributes:
        names: one for each column.
        unit: of all of them.
    """

    names: Annotated[tuple[str, ...], Field(strict=False)] = ("value",)
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Quantity(Prediction):
    """An estimated quantity.

    Attributes:
        name: what it is.
        value: how much.
        unit: of the value.
    """

    name: str
    value: float
    unit: str


class QuantityView(BaseModel):
    """An estimated quantity."""

    name: str
    value: JsonNumber
    unit: str


class Regression(Task):
    """The task of models whose first output is (batch, quantities)."""

    name = "regression"
    keys = TaskKeys(RegressionConfig)
    view = QuantityView

    def check(self, config: ModelConfig, outputs: Sequence[Port]) -> None:
        """Check that the first output has a column for each name.

        Raises:
            ModelConfigError: it has not.
        """
        names = config.task_table(RegressionConfig).names
        shape = outputs[0].shape if outputs else ()
        if shape is not None and (len(shape) != 2 or shape[1] not in (len(names), None)):
            found = f"the first output is {outputs[0]}" if outputs else "the graph has no output"
            raise ModelConfigError(FILE_NAME, "regression.names", found, f"(batch, {len(names)})")

    def predict(
        self, config: ModelConfig, ports: Sequence[Port], outputs: Sequence[Array], top_k: int | None
    ) -> Sequence[Sequence[Quantity]]:
        """Name the values of each item of the batch.

        Raises:
            ServiceError: 422 `no_quantities` where the input's size made an output of another shape.
        """
        del top_k
        table = config.task_table(RegressionConfig)
        output = outputs[0]
        if output.ndim != 2 or output.shape[1] != len(table.names) or output.dtype.kind == "c":
            message = (
                f"output {ports[0].operand} has shape {output.shape}; expected (batch, {len(table.names)})"
            )
            raise ServiceError(422, "no_quantities", message, {"shape": list(output.shape)})
        return [
            [Quantity(name, float(value), table.unit) for name, value in zip(table.names, row, strict=True)]
            for row in output.tolist()
        ]


register_task(Regression())
