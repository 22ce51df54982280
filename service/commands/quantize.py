"""`kuiper quantize`: the engine's own command, which can open folders of pictures here."""

from collections.abc import Sequence

from engine.calibration import main as quantize
from engine.calibration import make_parser
from service.pictures import PictureExamples

__all__ = ["main", "make_parser"]


def main(arguments: Sequence[str]) -> int:
    """Quantize a model; return the exit code of the process.

    Raises:
        SystemExit: an argument is wrong, with exit code 2, or help was asked for.
    """
    return quantize(arguments, PictureExamples)
