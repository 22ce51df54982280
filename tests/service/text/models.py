"""Models that take texts: tables of vectors, whose results numpy can show."""

import json
from pathlib import Path

import numpy as np

from engine.pnnx.archive_writer import write_archive

WORDS = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "red": 4, "green": 5, "blue": 6, "cat": 7}
VECTORS = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)
"""The vector of each word."""


def tokenizer_json(adds_tokens: bool = True) -> str:
    """Return a tokenizer of whole words, which puts [CLS] before a text and [SEP] behind it, or adds nothing."""
    single = [
        {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
    ]
    special = {name: {"id": name, "ids": [WORDS[name]], "tokens": [name]} for name in ("[CLS]", "[SEP]")}
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            # as many tokenizers come: the server fills rows up itself
            "padding": {
                "strategy": {"Fixed": 128},
                "direction": "Right",
                "pad_to_multiple_of": None,
                "pad_id": 0,
                "pad_type_id": 0,
                "pad_token": "[PAD]",
            },
            "added_tokens": [],
            "normalizer": {"type": "Lowercase"},
            "pre_tokenizer": {"type": "Whitespace"},
            "post_processor": {
                "type": "TemplateProcessing",
                "single": single,
                "pair": single,
                "special_tokens": special,
            }
            if adds_tokens
            else None,
            "decoder": None,
            "model": {"type": "WordLevel", "vocab": WORDS, "unk_token": "[UNK]"},
        }
    )


def add_text_model(
    folder: Path,
    config: str,
    length: str = "?",
    batch: str = "?",
    has_mask: bool = True,
    adds_tokens: bool = True,
) -> None:
    """Write a model that looks up the vector of each token: (batch, length) -> (batch, length, 5)."""
    folder.mkdir(parents=True)
    shape = f"({batch},{length})i64"
    mask = f"pnnx.Input mask 0 1 m #m={shape}\n" if has_mask else ""
    counts = "5 3" if has_mask else "3 2"
    # the mask only leaves: a token's vector is its own, whatever the others are
    last = "pnnx.Output seen 1 0 m\n" if has_mask else ""
    (folder / "m.param").write_text(
        f"7767517\n{counts}\npnnx.Input ids 0 1 0 #0={shape}\n{mask}"
        f"nn.Embedding table 1 1 0 e embedding_dim=5 num_embeddings={len(WORDS)} sparse=False "
        f"@weight=({len(WORDS)},5)f32 #0={shape} #e=({batch},{length},5)f32\n"
        f"pnnx.Output out 1 0 e #e=({batch},{length},5)f32\n{last}"
    )
    write_archive(folder / "m.bin", [("table.weight", memoryview(VECTORS.tobytes()))])
    (folder / "tokenizer.json").write_text(tokenizer_json(adds_tokens))
    (folder / "model.toml").write_text(config)


def ids_of(text: str) -> list[int]:
    """Return the ids of a text, as its tokenizer is to make them."""
    return [WORDS["[CLS]"], *(WORDS.get(word, 1) for word in text.lower().split()), WORDS["[SEP]"]]


def mean_of(text: str) -> np.ndarray:
    """Return the mean of the vectors of a text, made of length 1."""
    mean = VECTORS[ids_of(text)].astype(np.float64).mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))
