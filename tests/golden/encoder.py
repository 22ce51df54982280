"""An encoder of sentences, and what PyTorch computes with it at every length: `encoder.npz`, made by `make_encoder`."""

from pathlib import Path

import numpy as np

from engine.dtypes import Array
from tests.bench.encoder import WORDS, write_encoder

GOLDEN = Path(__file__).parent / "encoder.npz"
LAYERS, WIDTH, LONGEST = 2, 32, 130


def sentence(length: int, rows: int = 1) -> Array:
    """Return the tokens of sentences of a length, (rows, length), the same each time."""
    return np.random.default_rng(length).integers(0, WORDS, (rows, length))


def write_golden_encoder(folder: Path) -> Path:
    """Write the encoder; returns its `.param` file."""
    return write_encoder(folder, LAYERS, WIDTH)


def golden_outputs() -> Array:
    """Return what PyTorch gives for the sentence of each length, (lengths, features); that of length 1 comes first."""
    with np.load(GOLDEN) as archive:
        outputs: Array = archive["outputs"]
    return outputs
