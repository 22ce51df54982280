"""Models besides the digits, for attacks that need inputs of another kind."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.bench.encoder import write_encoder
from tests.engine.models import write_model

ENCODER = "encoder"
"""A small encoder of sentences of any length."""
TABLE = "table"
"""A model that takes a matrix of any size, so that CSV can be sent to it."""
_LINES: Mapping[str, str] = {
    TABLE: """
        pnnx.Input in 0 1 0 #0=(?,?)f32
        F.relu relu 1 1 0 1
        pnnx.Output out 1 0 1
    """
}


def write_repository(folder: Path, served: Path, names: tuple[str, ...]) -> Path:
    """Write a folder of models: the one that is served anyway, and some of these.

    Args:
        folder: an empty folder.
        served: the model that is served anyway.
        names: names of models of this module.

    Returns:
        The folder of all models.
    """
    models = folder / "models"
    shutil.copytree(served, models / served.name)
    for name in names:
        (models / name).mkdir()
        if name == ENCODER:
            write_encoder(models / name, layers=2, width=128)
        else:
            write_model(models / name, _LINES[name])
    return models
