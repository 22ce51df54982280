"""Padding of the last axes."""

from engine.binding.spatial_arguments import LAYER_MODES, spread
from engine.compiler.emit.pointwise import ZERO
from engine.compiler.graph import Node, Pad
from engine.compiler.lowering.context import LoweringContext, lowers
from engine.compiler.lowering.pointwise import number


@lowers("F.pad")
def functional_pad(context: LoweringContext) -> Node | None:
    """Lower padding of the last axes, by the number of pads in the file."""
    return _pad(context, tuple(context.value("pad")), context.value("mode"), context.value("value"))


def _register(type_name: str, mode: str, rank: int) -> None:
    @lowers(type_name)
    def rule(context: LoweringContext) -> Node | None:
        return _pad(
            context, spread("padding", context.value("padding"), 2 * rank), mode, context.value("value")
        )


for _name, _mode in LAYER_MODES.items():
    for _rank in (1, 2, 3):
        _register(f"nn.{_name}{_rank}d", _mode, _rank)


def _pad(context: LoweringContext, pads: tuple[int, ...], mode: str, value: object) -> Node | None:
    """Return the node; other modes than constant only for images, with or without rows."""
    shape = context.shape("input")
    fill = number(0.0 if value is None else value) if mode == "constant" else ZERO
    if shape is None or not context.has_operand("input") or fill is None:
        return None
    pairs = [(pads[at], pads[at + 1]) for at in range(len(pads) - 2, -1, -2)]
    margins = ((0, 0),) * (len(shape) - len(pairs)) + tuple(pairs)
    node = Pad([context.index], [context.tensor("input")], margins=margins, mode=mode, value=fill)
    return node if mode == "constant" or node.is_spatial else None
