"""Pictures in a folder, as examples for `kuiper quantize`: prepared as the model's `model.toml` says."""

from collections.abc import Sequence
from pathlib import Path

import service.tasks  # noqa: F401  # the tasks that `model.toml` may name
from engine import Array, InputError, Port
from service.config.image_config import ImageConfig
from service.config.image_formats import KNOWN_FORMATS
from service.config.limits import Limits
from service.config.model_config import FILE_NAME, load_model_config
from service.errors import ServiceError
from service.images.preparation import ImageInput, find_image_input, open_images, prepare

_SUFFIXES = frozenset(f".{name}" for name in (*KNOWN_FORMATS, "jpg", "tif"))


class PictureExamples:
    """The pictures of a folder and its subfolders, by path, each read when it is asked for.

    Args:
        folder: the folder.
        model_folder: folder of the model, or of one of its versions.
        ports: the graph's inputs, of which there is one.

    Raises:
        InputError: there are no pictures, or the model takes none.
        ModelConfigError: `model.toml` is malformed.
    """

    def __init__(self, folder: Path, model_folder: Path, ports: Sequence[Port]) -> None:
        self.name = folder.resolve().name
        self._paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES)
        if not self._paths:
            raise InputError(
                f"{folder}: holds no pictures; expected files ending in {', '.join(sorted(_SUFFIXES))}"
            )
        self._config, self._target = _image_input(model_folder, ports)
        if self._target.batch not in (None, 1):
            raise InputError(f"{folder}: the model takes {self._target.batch} pictures at once; give an .npz")

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, place: int) -> list[Array]:
        return [_prepared(self._paths[place], self._config, self._target)]


def prepare_picture(path: Path, model_folder: Path, ports: Sequence[Port]) -> Array:
    """Return a picture as a model's input, prepared as its `model.toml` says.

    Args:
        path: the picture.
        model_folder: folder of the model, or of one of its versions.
        ports: the graph's inputs, of which there is one.

    Raises:
        InputError: the file is no picture, or the model takes none.
        ModelConfigError: `model.toml` is malformed.
        OSError: the file cannot be read.
    """
    config, target = _image_input(model_folder, ports)
    return _prepared(path, config, target)


def _prepared(path: Path, config: ImageConfig, target: ImageInput) -> Array:
    try:
        images = open_images([path.read_bytes()], Limits().image_pixels, config.formats)
        return prepare(images, config, target).array
    except ServiceError as error:
        raise InputError(f"{path}: {error}") from error


def _image_input(model_folder: Path, ports: Sequence[Port]) -> tuple[ImageConfig, ImageInput]:
    """Return how the model's pictures are prepared; the file of a version lies in the folder above."""
    folder = next(
        (path for path in (model_folder, model_folder.parent) if (path / FILE_NAME).is_file()), model_folder
    )
    config = load_model_config(folder).image
    if config is None:
        raise InputError(
            f"{folder / FILE_NAME}: has no [image] table; expected one, or an .npz of prepared inputs"
        )
    if len(ports) != 1:
        raise InputError(f"the model has {len(ports)} inputs; pictures are for models of one: give an .npz")
    target = find_image_input(config, ports[0])
    if isinstance(target, str):
        raise InputError(target)
    return config, target
