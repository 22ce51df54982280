"""Files of a model's folder `samples/`: inputs that show what the model is for."""

from dataclasses import dataclass
from pathlib import Path

from service.repository.loaded_model import LoadedModel

FOLDER = "samples"
MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
    ".npy": "application/x-npy",
    ".npz": "application/x-npz",
    ".csv": "text/csv",
    ".json": "application/json",
    ".txt": "text/plain",
}
"""Media types of samples, by suffix; other files are none."""
_MAX_FILES = 200
_MAX_BYTES = 16 << 20
"""Maximum bytes of a sample: a larger file would be an input that hardly any server takes."""


@dataclass(frozen=True, slots=True)
class SampleFile:
    """A sample.

    Attributes:
        name: name of the file.
        path: where it is.
        media_type: media type of its content.
        size: its bytes.
    """

    name: str
    path: Path
    media_type: str
    size: int


def sample_files(model: LoadedModel) -> list[SampleFile]:
    """Return the samples of a model in order of name: those beside its files, or beside the folders of its versions.

    Only regular files that lie in the folder itself are samples: no links, nothing in folders below, and no file whose
    name is not UTF-8, which JSON cannot express. A pipeline without samples has those of its first step.
    """
    beside = model.graph.param_path.parent
    for folder in (beside / FOLDER, beside.parent / FOLDER):
        is_of_version = folder.parent == beside or beside.name == model.version
        if is_of_version and folder.is_dir():
            return _files(folder)
    return sample_files(model.steps[0].model) if model.steps else []


def _files(folder: Path) -> list[SampleFile]:
    found = []
    for path in sorted(folder.iterdir())[:_MAX_FILES]:
        media_type = MEDIA_TYPES.get(path.suffix.lower())
        if media_type is not None and _is_text(path.name) and path.is_file() and not path.is_symlink():
            size = path.stat().st_size
            if size <= _MAX_BYTES:
                found.append(SampleFile(path.name, path, media_type, size))
    return found


def _is_text(name: str) -> bool:
    """Return whether the bytes of a name are UTF-8; others are surrogates in it."""
    return not any("\ud800" <= character <= "\udfff" for character in name)
