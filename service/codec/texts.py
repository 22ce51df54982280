"""Makes the texts of a request inputs of a graph."""

from collections.abc import Sequence

import numpy as np

from engine import PNNX_COMPUTE, Array, Port
from service.codec.binding import bind, listing
from service.codec.decoded import Decoded
from service.codec.options import Options
from service.config.limits import Limits
from service.config.model_config import ModelConfig
from service.config.text_config import TextConfig, TextInput, Tokens
from service.errors import ServiceError

_USUAL: tuple[TextInput, ...] = ("input_ids", "attention_mask", "token_type_ids")
"""What the inputs of a graph hold, in order, where the configuration does not say."""

MAX_CHARACTERS = 1 << 20
"""Maximum characters of the texts of a request: a second of work for the tokenizer."""
TEXT_CHARACTERS = 16
"""Characters as which each text counts besides its own: to begin one takes as long."""


def bind_texts(
    texts: Sequence[str],
    ports: Sequence[Port],
    config: ModelConfig,
    limits: Limits,
    options: Options | None = None,
) -> Decoded:
    """Tokenize texts as the inputs of a graph, a row each; shorter ones are filled up, and the mask hides that.

    Args:
        texts: the texts.
        ports: the graph's inputs.
        config: the model's configuration.
        limits: upper bounds on the request's size.
        options: what the body holds beside them.

    Raises:
        ServiceError: 422 `not_a_text_model`, `wrong_text_count`, `empty_text` or `unequal_lengths`, 413
            `tensor_too_large` or `text_too_long`.
    """
    if config.text is None:
        message = (
            f"the model takes no texts: its model.toml has no [text] table; send tensors for {listing(ports)}"
        )
        raise ServiceError(422, "not_a_text_model", message, {"inputs": [port.operator for port in ports]})
    kinds = input_kinds(config.text, ports)
    rows = ports[0].shape[0] if ports[0].shape else None
    if not texts or (rows is not None and len(texts) != rows):
        raise _wrong_count(len(texts), "at least one" if rows is None else str(rows))
    limits.check_shape((len(texts), 1), "texts")
    characters = sum(map(len, texts)) + len(texts) * TEXT_CHARACTERS
    if characters > MAX_CHARACTERS:
        message = (
            f"the texts have more than {MAX_CHARACTERS} characters, where each text counts as {TEXT_CHARACTERS} more; "
            "send fewer at a time"
        )
        details = {"limit": MAX_CHARACTERS, "unit": "characters"}
        raise ServiceError(413, "text_too_long", message, details)
    tokens = config.text.tokenize(texts, _declared_length(ports[0]))
    _check_filled(tokens)
    length = _length(config.text, ports[0], [len(item.ids) for item in tokens])
    limits.check_shape((len(texts), length), f"input {ports[0].operator}")
    lengths = {min(len(item.ids), length) for item in tokens}
    if "attention_mask" not in kinds and lengths != {length}:
        length = _equal(lengths, ports[0], length)
    pairs = [
        (port, _rows(kind, port, tokens, length, config.text))
        for port, kind in zip(ports, kinds, strict=True)
    ]
    counts = tuple(min(len(item.ids), length) for item in tokens)
    return Decoded(bind(ports, pairs), options or Options(), token_counts=counts, texts=tuple(texts))


def input_kinds(config: TextConfig, ports: Sequence[Port]) -> tuple[TextInput, ...]:
    """Return what each input of a graph holds of a text.

    Raises:
        ServiceError: 422 `not_a_text_model` where there are more inputs than that.
    """
    kinds = config.inputs or _USUAL[: len(ports)]
    if len(kinds) != len(ports):
        message = f"the model takes {len(ports)} inputs, {listing(ports)}; texts make {len(kinds)}: {', '.join(kinds)}"
        raise ServiceError(422, "not_a_text_model", message, {"inputs": [port.operator for port in ports]})
    return kinds


def _check_filled(tokens: Sequence[Tokens]) -> None:
    """Check that each text has a token: what a model makes of filling alone means nothing.

    Raises:
        ServiceError: 422 `empty_text`.
    """
    index = next((index for index, item in enumerate(tokens) if not item.ids), None)
    if index is not None:
        message = f"text {index} has no token that the model's tokenizer knows; send a text that is not empty"
        raise ServiceError(422, "empty_text", message, {"index": index})


def _declared_length(port: Port) -> int | None:
    """Return how many tokens a row of an input has; None where the graph leaves that open."""
    return port.shape[1] if port.shape is not None and len(port.shape) > 1 else None


def _length(config: TextConfig, port: Port, lengths: Sequence[int]) -> int:
    """Return how many tokens a row has: as the graph declares, or as the longest text needs."""
    declared = _declared_length(port)
    if declared is not None:
        return declared
    most = max(lengths)
    return min(-(-most // config.multiple) * config.multiple, max(config.max_length, most))


def _equal(lengths: set[int], port: Port, length: int) -> int:
    """Return the one length of texts for a model that takes no mask.

    Raises:
        ServiceError: 422 `unequal_lengths`.
    """
    declared = _declared_length(port)
    if declared is None and len(lengths) == 1:
        return lengths.pop()
    found = sorted(lengths)
    message = (
        f"the model takes no mask, so that all texts need {'as many' if declared is None else length} tokens; "
        f"these have {', '.join(map(str, found[:8]))}: send them one at a time"
    )
    raise ServiceError(422, "unequal_lengths", message, {"lengths": found[:64]})


def _rows(kind: TextInput, port: Port, tokens: Sequence[Tokens], length: int, config: TextConfig) -> Array:
    dtype = np.dtype(np.int64) if port.dtype is None else PNNX_COMPUTE[port.dtype]
    filling = config.padding_id if kind == "input_ids" else 0
    made = np.full((len(tokens), length), filling, dtype)
    for row, item in zip(made, tokens, strict=True):
        count = min(len(item.ids), length)
        if kind == "attention_mask":
            row[:count] = 1
        else:
            row[:count] = (item.ids if kind == "input_ids" else item.types)[:count]
    return made


def _wrong_count(count: int, expected: str) -> ServiceError:
    message = f"there are {count} texts; the model takes {expected}"
    return ServiceError(422, "wrong_text_count", message, {"count": count, "expected": expected})
