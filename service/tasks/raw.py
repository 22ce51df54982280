"""Models without a task: their outputs are returned as they are."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine import Array
from service.images.geometry import ImageGeometry
from service.tasks.task import Prediction, Task


class Raw(Task):
    """The default task, which accepts any outputs and makes no predictions."""

    name = "raw"

    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[Prediction]] | None:
        """Return None."""
        del outputs, images, parameters
        return None
