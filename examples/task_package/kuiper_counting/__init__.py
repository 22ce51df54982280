"""A task that a package of its own adds: how many elements of an output exceed a threshold.

task = "counting"

[counting]
threshold = 0.5                 # a request may ask for another one: ?threshold=0.9
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from kuiper import Array
from service.config.task_keys import TaskKeys
from service.config.toml_table import TomlTable
from service.images.geometry import ImageGeometry
from service.tasks import Prediction, Task, TaskParameters


class CountingConfig(TomlTable):
    """What counts.

    Attributes:
        threshold: elements above it count, unless the request names another one.
    """

    threshold: float = 0.0


class CountingParameters(TaskParameters):
    """What a request may set."""

    threshold: float | None = Field(default=None, description="elements above it count")


@dataclass(frozen=True, slots=True)
class Count(Prediction):
    """How many elements of an item are above the threshold."""

    count: Annotated[int, Field(description="elements above the threshold")]
    of: Annotated[int, Field(description="all elements")]


class Counting(Task):
    """The task of models whose first output has a batch dimension."""

    name = "counting"
    keys = TaskKeys(CountingConfig)
    prediction = Count
    parameters = CountingParameters

    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[Count]]:
        """Count the elements of each item."""
        del images
        threshold = parameters.get("threshold")
        if threshold is None:
            threshold = self.model.config.task_table(CountingConfig).threshold
        return [[Count(int(np.count_nonzero(item > threshold)), item.size)] for item in outputs[0]]
