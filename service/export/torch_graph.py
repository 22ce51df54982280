"""What a TorchScript module says of itself: its inputs, each tensor on the way, and the line that computes it.

Names that PyTorch keeps to itself (`torch._C`) are used in this file alone; where one of them is gone, a model is
exported all the same, with a shorter report.
"""

import ctypes
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from engine import Array
from service.export.extra import need
from service.export.source import Result
from service.export.trial import has_last_bit

_FRAME = re.compile(r"^(?P<file>[^\s(].*?)\((?P<line>\d+)\): (?P<function>\S+)", re.MULTILINE)
_INSIDE = re.compile(r"[/\\]torch[/\\](nn|_[a-z]|jit|functional|utils|autograd)")
_MAX = 240
_WITH_ROUNDING, _WITH_DECIMALS, _OF_TENSOR = 3, 2, 5
"""How many arguments a division has that rounds, a rounding to decimals, and a slice of a tensor, not of a list."""
_NO_END = 1 << 62
_LEAST_MOVED = 1 << 24
_PART = 1 << 20
"""Numbers that are flipped at once, as their flags take memory."""
_REPEATING = tuple(
    f"aten::{name}"
    for name in (
        "view",
        "reshape",
        "flatten",
        "squeeze",
        "unsqueeze",
        "contiguous",
        "detach",
        "dropout",
        "alias",
    )
)
_NOT_COMPUTING = ("prim::GetAttr", "prim::Constant")
_GIVEN = (*_NOT_COMPUTING, "prim::Param")
_KINDS = re.compile(r"^(?:torch|F|Tensor|nn|aten::|prim::)[.:]*")


def input_names(module: Any) -> list[str]:
    """Return the names of the arguments of a module's `forward`."""
    return [argument.name for argument in module.forward.schema.arguments if argument.name != "self"]


def results_of(module: Any, arrays: Sequence[Array]) -> list[Result]:
    """Return each tensor that a module computes, in order; none where it branches, or PyTorch does not say."""
    torch = need("torch")
    try:
        graph = module.inlined_graph.copy()
        nodes = [node for node in _computing(graph) if not _repeats(node)]
        lines = [line_of(node) for node in nodes for value in node.outputs() if _is_tensor(value)]
        values = [_copy_of(value, graph) for node in nodes for value in node.outputs() if _is_tensor(value)]
        for _ in list(graph.outputs()):
            graph.eraseOutput(0)
        for value in values:
            graph.registerOutput(value)
        graph.makeMultiOutputIntoTuple()
        function = torch._C._create_function_from_graph("results", graph)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tensors = function(module._c, *(torch.from_numpy(array.copy()) for array in arrays))
    except (AttributeError, RuntimeError, TypeError):
        return []
    return [
        Result(tensor.detach().numpy(), line)
        for tensor, line in zip(tensors, lines, strict=True)
        if isinstance(tensor, torch.Tensor) and tensor.dim() > 0 and not tensor.is_quantized
    ]


def respell(module: Any) -> None:
    """Replace what the exporter gets wrong by what means the same, and it gets right."""
    for part in module.modules():
        if part._c._has_method("forward"):
            graph: Any = part.graph
            for node in graph.findAllNodes("aten::div"):
                _respell_division(node, graph)
            for node in graph.findAllNodes("aten::round"):
                _respell_rounding(node, graph)
            for node in graph.findAllNodes("aten::slice"):
                _respell_slice(node, graph)


def _respell_division(node: Any, graph: Any) -> None:
    """Make `floor_divide(x, y)` or `trunc(div(x, y))` of a division that rounds: the exporter loses the rounding."""
    inputs = list(node.inputs())
    rounding = inputs[2].toIValue() if len(inputs) == _WITH_ROUNDING else None
    if rounding == "floor":
        _replace(node, _insert(node, graph, "aten::floor_divide", inputs[:2]))
    elif rounding == "trunc" and _is_float(node.output()):
        _replace(node, _insert(node, graph, "aten::trunc", [_insert(node, graph, "aten::div", inputs[:2])]))


def _respell_rounding(node: Any, graph: Any) -> None:
    """Make `div(round(mul(x, 100)), 100)` of `round(x, decimals=2)`, which the exporter reads as `round(x)`."""
    inputs = list(node.inputs())
    decimals = inputs[1].toIValue() if len(inputs) == _WITH_DECIMALS else None
    if decimals:
        factor = graph.create("prim::Constant", 1)
        factor.f_("value", 10.0**decimals).insertBefore(node)
        factor.output().setType(need("torch")._C.FloatType.get())
        scaled = _insert(node, graph, "aten::mul", [inputs[0], factor.output()])
        rounded = _insert(node, graph, "aten::round", [scaled])
        _replace(node, _insert(node, graph, "aten::div", [rounded, factor.output()]))


def _insert(node: Any, graph: Any, kind: str, inputs: Sequence[Any]) -> Any:
    """Insert a node with a tensor like that of another, before it; return the tensor."""
    made = graph.create(kind, list(inputs), 1)
    made.insertBefore(node)
    made.output().setType(node.output().type())
    return made.output()


def _replace(node: Any, value: Any) -> None:
    node.output().replaceAllUsesWith(value)
    node.destroy()


def _is_float(value: Any) -> bool:
    dtype = value.type().dtype()
    return dtype is not None and dtype.is_floating_point


def _respell_slice(node: Any, graph: Any) -> None:
    """Count the end of a slice from the front: `x[:-1]` becomes `x[:x.size(0) - 1]`, `x[1:]` becomes `x[1:x.size(0)]`.

    Of a dynamic dimension the exporter leaves out slices whose bounds are constants.
    """
    inputs = list(node.inputs())
    if len(inputs) != _OF_TENSOR or any(value.node().kind() != "prim::Constant" for value in inputs[1:]):
        return
    start, end, step = (value.toIValue() for value in inputs[2:])
    is_whole = end is None or end >= _NO_END
    if (not is_whole and end >= 0) or (is_whole and start in (None, 0) and step == 1):
        return
    bound = graph.create("aten::size", inputs[:2], 1)
    bound.insertBefore(node)
    bound.output().setType(inputs[1].type())
    if not is_whole:
        size = bound
        bound = graph.create("aten::add", [size.output(), inputs[3]], 1)
        bound.insertBefore(node)
        bound.output().setType(inputs[1].type())
    node.replaceInput(3, bound.output())


@contextmanager
def perturbed(module: Any) -> Iterator[None]:
    """Flip the last bit of each float32 weight of a module, in place, and flip it back in the end."""
    torch = need("torch")
    weights = [weight.data for weight in module.parameters() if weight.dtype == torch.float32]
    parts = [
        part
        for weight in weights
        for part in (weight.flatten() if weight.is_contiguous() else weight).split(_PART)
    ]

    def flip() -> None:
        for part in parts:
            bits = part.view(torch.int32)
            bits.bitwise_xor_(has_last_bit(bits).int())

    flip()
    try:
        yield
    finally:
        flip()


def weights_to_file(module: Any, folder: Path) -> Callable[[], None]:
    """Move the large weights of a module from memory to a file of a folder; returns what brings them back.

    The file is written once, as the weights stay what they are.
    """
    weights = (*module.parameters(), *module.buffers())
    found = [weight.untyped_storage() for weight in weights if weight.layout == need("torch").strided]
    storages = {
        storage.data_ptr(): storage
        for storage in found
        if storage.nbytes() >= _LEAST_MOVED and storage.resizable() and storage.device.type == "cpu"
    }
    path = folder / "weights"
    sizes = [storage.nbytes() for storage in storages.values()]
    if not path.exists():
        try:
            with path.open("wb") as file:
                file.writelines(map(_bytes_of, storages.values()))
        except OSError:  # they stay where there is no room for the file
            path.unlink(missing_ok=True)
            return lambda: None
    for storage in storages.values():
        storage.resize_(0)

    def restore() -> None:
        with path.open("rb") as file:
            for storage, size in zip(storages.values(), sizes, strict=True):
                storage.resize_(size)
                file.readinto(_bytes_of(storage))

    return restore


def _bytes_of(storage: Any) -> Any:
    """Return the memory of a storage, which PyTorch resizes as no array of numpy has seen it."""
    return (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())


def weight_of(module: Any, name: str) -> Array | None:
    """Return a weight of a module; None where it has none of this name."""
    found = module.state_dict().get(name)
    return None if found is None else np.asarray(found.detach().numpy())


def lines_of(module: Any, kind: str) -> list[str]:
    """Return the lines that use an operator of this type, as PNNX calls it: `aten::foo`, `torch.foo`, `F.foo`."""
    wanted = _KINDS.sub("", kind)
    try:
        nodes = [node for node in module.inlined_graph.nodes() if node.kind().rpartition("::")[2] == wanted]
    except (AttributeError, RuntimeError):
        return []
    return list(dict.fromkeys(filter(None, map(line_of, nodes))))


def line_of(node: Any) -> str:
    """Return the line of the model that a node of a graph comes from, as `net.py:12 in forward`; empty if unknown."""
    return own_line(str(node.sourceRange()))


def own_line(text: str) -> str:
    """Return the first line of a stack, innermost first, that is not PyTorch's own; empty where there is none."""
    for match in _FRAME.finditer(text):
        if not _INSIDE.search(match["file"]) and match["function"] != "<module>":
            return f"{match['file']}:{match['line']} in {match['function']}"
    return ""


def said_by(error: BaseException) -> str:
    """Return what an error says in one line, with the line of the model at fault where a traceback shows it."""
    text = str(error).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = next(
        (line for line in reversed(lines) if "Error" in line.split(":")[0]), lines[0] if lines else ""
    )
    where = own_line(text) or _raised_in(error)
    return said[:_MAX] + (f" ({where})" if where else "")


def _raised_in(error: BaseException) -> str:
    """Return the innermost line of a traceback that is neither PyTorch's nor this package's."""
    found = ""
    frame = error.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        if not _INSIDE.search(code.co_filename) and not _is_ours(frame.tb_frame.f_globals.get("__name__")):
            found = f"{code.co_filename}:{frame.tb_lineno} in {code.co_name}"
        frame = frame.tb_next
    return found if not found.startswith("<frozen") else ""


def _is_ours(module: Any) -> bool:
    return str(module).startswith(("service.", "importlib", "torch"))


def _computing(graph: Any) -> Iterator[Any]:
    """Yield the nodes that compute something; a weight is none."""
    for node in graph.nodes():
        if node.kind() not in _NOT_COMPUTING:
            yield node


def _repeats(node: Any) -> bool:
    """Whether a node's tensor has the elements of one that another node computes, in the same order."""
    return node.kind() in _REPEATING and next(node.inputs()).node().kind() not in _GIVEN


def _copy_of(value: Any, graph: Any) -> Any:
    """Add a copy of a tensor to a graph, made before a later node changes the tensor in place."""
    torch = need("torch")
    none = graph.create("prim::Constant", 1)
    none.output().setType(torch._C.NoneType.get())
    copy = graph.create("aten::clone", [value, none.output()], 1)
    none.insertAfter(value.node())
    copy.insertAfter(none)
    return copy.output()


def _is_tensor(value: Any) -> bool:
    torch = need("torch")
    return bool(value.type().isSubtypeOf(torch._C.TensorType.get()))
