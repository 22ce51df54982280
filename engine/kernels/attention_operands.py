"""Identifies the operands of an exported nn.MultiheadAttention.

The exporter lists them in the order in which the traced code first used them, each once (self-attention has a single
one), and calls one of them `attn_mask`, not always the right one: a mask of bools is used before the sequences are.
By ranks, sizes and dtypes.
"""

from collections.abc import Sequence
from typing import NamedTuple

from engine.kernels.promotion import TensorLike


class Layout(NamedTuple):
    """Properties of an attention that do not depend on its operands.

    Attributes:
        heads: number of heads.
        widths: features of query, key and value.
        batch_first: whether batched sequences are (batch, length, features), not (length, batch, features).
    """

    heads: int
    widths: tuple[int, int, int]
    batch_first: bool


class OperandPlaces(NamedTuple):
    """Places of the operands in the list of them."""

    query: int
    key: int
    value: int
    attn_mask: int | None
    key_padding_mask: int | None


def place_operands(operands: Sequence[TensorLike], named_mask: bool, layout: Layout) -> OperandPlaces:
    """Identify the operands.

    Args:
        operands: in the exporter's order, but the one that it calls `attn_mask` last.
        named_mask: whether the last one is so called.
        layout: the attention's heads and widths.

    Raises:
        ValueError: there are too few or too many of a kind.
    """
    floats = [place for place, x in enumerate(operands) if x.dtype.kind != "b"]
    if not floats:
        raise ValueError("no operand is of a float dtype")
    query = operands[floats[0]]
    sequences, masks = [floats[0]], [place for place, x in enumerate(operands) if x.dtype.kind == "b"]
    for place in floats[1:]:
        length = _length(operands[sequences[-1]], layout)
        called_mask = named_mask and place == len(operands) - 1
        if _is_mask(operands[place], query, length, called_mask, layout):
            masks.append(place)
        else:
            sequences.append(place)
    if len(sequences) > 3 or len(masks) > 2:
        raise ValueError(f"{len(sequences)} sequences and {len(masks)} masks")
    query_place, key, value = _sequences(operands, sequences, layout)
    shape = (_length(query, layout), _length(operands[key], layout))
    return OperandPlaces(query_place, key, value, *_masks(operands, masks, shape))


def _length(x: TensorLike, layout: Layout) -> int:
    return x.shape[1] if len(x.shape) == 3 and layout.batch_first else (x.shape or (0,))[0]


def _is_mask(x: TensorLike, query: TensorLike, keys: int, called_mask: bool, layout: Layout) -> bool:
    if len(x.shape) != len(query.shape) or len(x.shape) not in (2, 3) or x.shape[-1] not in layout.widths:
        return True
    if len(x.shape) == 2:
        return called_mask and x.shape == (_length(query, layout), keys)
    axis = 0 if layout.batch_first else 1
    mask_shape = (query.shape[axis] * layout.heads, _length(query, layout), keys)
    return x.shape[axis] != query.shape[axis] or (called_mask and x.shape == mask_shape)


def _sequences(operands: Sequence[TensorLike], places: Sequence[int], layout: Layout) -> tuple[int, int, int]:
    """Of two sequences the second is key and value, unless only one of the two has the features of its operand."""
    if len(places) == 3:
        return places[0], places[1], places[2]
    query, other = places[0], places[-1]
    _, key_width, value_width = layout.widths
    first, second = operands[query].shape[-1:], operands[other].shape[-1:]
    if key_width != value_width and second == (value_width,) and first == (key_width,):
        return query, query, other
    if key_width != value_width and second == (key_width,) and first == (value_width,):
        return query, other, query
    return query, other, other


def _masks(
    operands: Sequence[TensorLike], places: Sequence[int], scores: tuple[int, int]
) -> tuple[int | None, int | None]:
    """Distinguish the attention mask from the key padding mask, by shape, else by the exporter's order."""

    def fits_scores(place: int) -> bool:
        return len(operands[place].shape) > 2 or operands[place].shape == scores

    if not places:
        return None, None
    if len(places) == 1:
        return (places[0], None) if fits_scores(places[0]) else (None, places[0])
    first, second = places if operands[places[0]].dtype.kind != "b" else (places[1], places[0])
    if not fits_scores(first) or len(operands[second].shape) > 2:
        first, second = second, first
    return first, second
