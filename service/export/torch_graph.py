"""What a TorchScript module says of itself: its inputs, each tensor on the way, and the line that computes it.

Names that PyTorch keeps to itself (`torch._C`) are used in this file alone; where one of them is gone, a model is
exported all the same, and less is told about it.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from engine import Array
from service.export.extra import need
from service.export.source import Result

_FRAME = re.compile(r"^(?P<file>[^\s(].*?)\((?P<line>\d+)\): (?P<function>\S+)", re.MULTILINE)
_INSIDE = re.compile(r"[/\\]torch[/\\](nn|_[a-z]|jit|functional|utils|autograd)")
_MOST = 240
_KINDS = re.compile(r"^(?:torch|F|Tensor|nn|aten::|prim::)[.:]*")


def input_names(module: Any) -> list[str]:
    """Return the names of the arguments of a module's `forward`."""
    return [argument.name for argument in module.forward.schema.arguments if argument.name != "self"]


def results_of(module: Any, arrays: Sequence[Array]) -> list[Result]:
    """Return each tensor that a module computes, in order; none where it branches, or PyTorch does not tell."""
    torch = need("torch")
    try:
        graph = module.inlined_graph.copy()
        values = [value for node in _computing(graph) for value in node.outputs() if _is_tensor(value)]
        lines = [line_of(node) for node in _computing(graph) for value in node.outputs() if _is_tensor(value)]
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
    """Return what an error says in one line, with the line of the model at fault where a traceback tells."""
    text = str(error).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = next(
        (line for line in reversed(lines) if "Error" in line.split(":")[0]), lines[0] if lines else ""
    )
    where = own_line(text) or _raised_in(error)
    return said[:_MOST] + (f" ({where})" if where else "")


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
        if node.kind() not in ("prim::GetAttr", "prim::Constant"):
            yield node


def _is_tensor(value: Any) -> bool:
    torch = need("torch")
    return bool(value.type().isSubtypeOf(torch._C.TensorType.get()))
