"""What the user of an export says of a model."""

from dataclasses import dataclass
from pathlib import Path

from service.config.task_keys import reads_characters
from service.errors import did_you_mean
from service.export.errors import ExportError, WishError
from service.export.preset import PRESETS, Preset
from service.tasks import task_names


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user says of a model.

    Attributes:
        task: name of its task; None for what can be inferred.
        labels: a file with one label per line, or `imagenet` or `coco`; None for those of the preset.
        preset: name of a preset; None for none.
        tokenizer: a `tokenizer.json`, for a model that takes text; None for none.
        description: a sentence for people; None for what it was exported from.
    """

    task: str | None = None
    labels: str | None = None
    preset: str | None = None
    tokenizer: Path | None = None
    description: str | None = None

    @property
    def known_preset(self) -> Preset | None:
        """The preset; None for none."""
        return PRESETS[self.preset] if self.preset is not None else None

    @property
    def is_reader(self) -> bool:
        """Whether the labels are the characters of a model that reads text."""
        preset = self.known_preset
        return reads_characters(self.task or (preset.task if preset is not None else None))


def check_wishes(wishes: Wishes) -> None:
    """Check what can be checked before the export.

    Raises:
        WishError: there is no such preset or task.
        ExportError: there is no such tokenizer.
    """
    if wishes.preset is not None and wishes.preset not in PRESETS:
        near = did_you_mean(wishes.preset, PRESETS)
        raise WishError(f"there is no preset {wishes.preset!r}; expected {', '.join(PRESETS)}{near}")
    if wishes.task is not None and wishes.task not in task_names():
        near = did_you_mean(wishes.task, task_names())
        raise WishError(f"there is no task {wishes.task!r}; expected {', '.join(task_names())}{near}")
    if wishes.tokenizer is not None and not wishes.tokenizer.is_file():
        raise ExportError(f"there is no file {wishes.tokenizer}")
