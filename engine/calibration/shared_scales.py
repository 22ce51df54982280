"""Tensors that need scales, and groups that share one, so that integers pass between them unchanged."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from engine.calibration.candidates import Candidate
from engine.model.operator import INPUT, RuntimeOperand, RuntimeOperator
from engine.quantization.scheme import Activation

MAX_WIDENING = 2.0
"""Maximum ratio of a shared range to a tensor's own range: it costs one of eight bits."""
_KEEPS_VALUES = frozenset(
    (
        *("nn.MaxPool1d", "nn.MaxPool2d", "F.max_pool1d", "F.max_pool2d"),
        *("torch.cat", "torch.chunk", "torch.split", "torch.flatten", "Tensor.slice", "Tensor.select"),
        *("nn.Upsample", "F.upsample", "F.interpolate", "nn.UpsamplingNearest2d", "nn.ChannelShuffle"),
    )
)
"""Types whose results lie between their inputs' elements, so that both can share a scale."""


def scaled_operands(candidates: Iterable[Candidate], floats: Collection[str]) -> list[RuntimeOperand]:
    """Return the operands that need a scale for these layers.

    Besides the inputs of layers, these are the tensors that such an input is put together or chosen from, by
    concatenation or maximum pooling: their integers can become its own.

    Args:
        candidates: the layers.
        floats: the operands that are float32 tensors.
    """
    found: dict[str, RuntimeOperand] = {}
    waiting = [
        candidate.operator.inputs[0]
        for candidate in reversed(list(candidates))
        if candidate.activation is Activation.STATIC
    ]
    while waiting:
        operand = waiting.pop()
        if operand.name not in found:
            found[operand.name] = operand
            waiting += reversed(list(_sources(operand, floats)))
    return list(found.values())


def _sources(operand: RuntimeOperand, floats: Collection[str]) -> Iterator[RuntimeOperand]:
    """Yield what an operand is put together or chosen from."""
    producer = operand.producer
    for source in producer.inputs if producer.type in _KEEPS_VALUES else ():
        if source.name in floats and source.producer.type != INPUT:
            yield source


def shared_scales(operands: Sequence[RuntimeOperand], widths: Mapping[str, float]) -> list[list[str]]:
    """Return the operands that share a scale, together; each of the operands is in one group.

    A concatenation or selection of tensors shares their scale unless that widens the range of one of them too much. A
    tensor that nothing else reads loses nothing by it, as narrow as it may be: it is rounded to the integers of the
    result in any case.

    Args:
        operands: what needs a scale.
        widths: operand -> from its least number to its greatest, 0 included.
    """
    groups = {operand.name: [operand] for operand in operands}
    pairs = [(source.name, operand.name) for operand in operands for source in _sources(operand, groups)]
    # those that are most alike first: a tensor that may share with one of several does with the nearest
    for source_name, name in sorted(pairs, key=lambda pair: _ratio(widths[pair[0]], widths[pair[1]])):
        ours, theirs = groups[source_name], groups[name]
        joined = [*ours, *theirs]
        if ours is not theirs and _may_share(joined, widths):
            groups.update((operand.name, joined) for operand in joined)
    distinct = {id(group): group for group in groups.values()}
    return [[operand.name for operand in group] for group in distinct.values()]


def _ratio(one: float, other: float) -> float:
    """Return the wider of two ranges over the narrower one."""
    narrow, wide = sorted((one, other))
    return wide / narrow if narrow else 1.0


def _may_share(operands: Sequence[RuntimeOperand], widths: Mapping[str, float]) -> bool:
    names = {operand.name for operand in operands}
    widest = max(widths[name] for name in names)
    return all(
        widest <= MAX_WIDENING * widths[operand.name]
        for operand in operands
        if widths[operand.name] and not _is_read_as_part(operand, names)
    )


def _is_read_as_part(operand: RuntimeOperand, names: Collection[str]) -> bool:
    """Whether all that reads an operand gives tensors of the same integers, of these names."""
    return all(_keeps(reader, names) for reader in operand.consumers)


def _keeps(reader: RuntimeOperator, names: Collection[str]) -> bool:
    return reader.type in _KEEPS_VALUES and all(result.name in names for result in reader.outputs)
