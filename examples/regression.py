"""A task: models that estimate quantities, such as the width and the height of what an image shows.

task = "regression"

[regression]
names = ["width", "height"]     # of the columns of the first output
unit = "mm"                     # of all of them
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from kuiper import Array
from service.config.model_config import FILE_NAME, ModelConfigError
from service.config.task_keys import TaskKeys
from service.config.toml_table import TomlTable
from service.errors import ServiceError
from service.images.geometry import ImageGeometry
from service.tasks import Prediction, Task, TaskModel, register_task


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
    """An estimated quantity."""

    name: Annotated[str, Field(description="what it is")]
    value: Annotated[float, Field(description="how much")]
    unit: Annotated[str, Field(description="of the value")]


@register_task
class Regression(Task):
    """The task of models whose first output is (batch, quantities).

    Raises:
        ModelConfigError: the first output does not have a column for each name.
    """

    name = "regression"
    keys = TaskKeys(RegressionConfig)
    prediction = Quantity

    def __init__(self, model: TaskModel) -> None:
        super().__init__(model)
        self._table = model.config.task_table(RegressionConfig)
        outputs, count = model.outputs, len(self._table.names)
        shape = outputs[0].shape if outputs else ()
        if shape is not None and (len(shape) != 2 or shape[1] not in (count, None)):
            found = f"the first output is {outputs[0]}" if outputs else "the graph has no output"
            raise ModelConfigError(FILE_NAME, "regression.names", found, f"(batch, {count})")

    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[Quantity]]:
        """Name the values of each item of the batch.

        Raises:
            ServiceError: 422 `no_quantities` where the input's size made an output of another shape.
        """
        del images, parameters
        output, names, unit = outputs[0], self._table.names, self._table.unit
        if output.ndim != 2 or output.shape[1] != len(names) or output.dtype.kind == "c":
            message = f"the first output has shape {output.shape}; expected (batch, {len(names)})"
            raise ServiceError(422, "no_quantities", message, {"shape": list(output.shape)})
        return [
            [Quantity(name, float(value), unit) for name, value in zip(names, row, strict=True)]
            for row in output.tolist()
        ]
