"""Programs of `torch.export`, as `torch.export.save(…)` writes them: `.pt2` files.

The exporter reads TorchScript, so a program is traced. `torch.jit.trace` records the sizes of tensors where Python asks
for them, and not where operators of a program do (`aten.sym_size`): dynamic dimensions would be frozen at those of the
example. So operators that make or take sizes are replaced by the functions of PyTorch that people write.
"""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from engine import pnnx_name
from service.export.errors import ExportError
from service.export.extra import need
from service.export.input_spec import DTYPES, InputSpec, usual_size
from service.export.source import check_archive
from service.export.torch_graph import said_by
from service.export.torch_source import ModuleSource

_GUARDS = "_guards_fn"
"""Checks of the inputs, which a program has for its caller."""
_WRITER = "torch.export.save writes one"


def open_program(path: Path) -> ModuleSource:
    """Return the module of a program, with the inputs that it declares.

    Raises:
        ExportError: the file cannot be read, or is no program, or takes something else than tensors.
    """
    check_archive(path, "a program of torch.export", f"; {_WRITER}")
    torch = need("torch")
    logged: list[str] = []
    try:
        with warnings.catch_warnings(), _log_kept(logged):
            warnings.simplefilter("ignore")  # of PyTorch's parts about one another
            program = torch.export.load(path)
            module, traced = _flat(program.module()), _traceable(_flat(program.module()))
    except Exception as error:  # of zipfile, of pickle, of torch, each their own
        reason = next(iter(logged), said_by(error))  # the log has the first error, the last refers to the log
        raise ExportError(f"{path.name} is not a program of torch.export: {reason}; {_WRITER}") from error
    title = f"{path.name}, torch.export"
    return ModuleSource(title, module, _with_one_row(module, list(_specs(program, title))), traced)


@contextmanager
def _log_kept(logged: list[str]) -> Iterator[None]:
    """Keep what PyTorch logs of a file that it cannot read, which is a traceback, from the terminal.

    Args:
        logged: gets the errors, each as a line.
    """

    def keep(record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[1]:
            logged.append(said_by(record.exc_info[1]))
        return False

    logger = logging.getLogger("torch.export")
    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)


def _flat(module: Any) -> Any:
    """Return a program's module such that it takes and gives tensors by place, however they were nested or named."""
    fx = need("torch").fx
    module.graph.set_codegen(fx.graph.CodeGen())
    output = module.graph.output_node()
    if len(output.args[0]) == 1:
        output.args = tuple(output.args[0])
    return fx.GraphModule(module, module.graph)  # without the hook that checks how the inputs are nested


def _specs(program: Any, title: str) -> Iterator[InputSpec]:
    torch = need("torch")
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    for name in program.graph_signature.user_inputs:
        value = values.get(name)
        if not isinstance(value, torch.Tensor):
            raise ExportError(f"{title}: input {name} is not a tensor; expected tensors alone")
        dtype = pnnx_name(torch.empty(0, dtype=value.dtype).numpy().dtype)
        if dtype not in DTYPES:
            raise ExportError(f"{title}: input {name!r} is of {dtype}; expected {', '.join(DTYPES)}")
        shape = [_size(size, axis, value.dim()) for axis, size in enumerate(value.shape)]
        is_dynamic = tuple(not isinstance(size, int) for size in value.shape)
        yield InputSpec(tuple(shape), is_dynamic, dtype, name)


def _with_one_row(module: Any, specs: Sequence[InputSpec]) -> list[InputSpec]:
    """Return inputs with a batch of 1 where it is dynamic, as most requests have it, if the program takes that.

    Examples of programs have 2, since PyTorch takes sizes of 1 for fixed ones.
    """
    torch = need("torch")
    alone = [
        replace(spec, shape=(1, *spec.shape[1:])) if any(spec.is_dynamic[:1]) else spec for spec in specs
    ]
    try:
        with torch.no_grad():
            module(*(torch.from_numpy(np.zeros(spec.shape, spec.numpy_dtype)) for spec in alone))
    except Exception:  # whatever the program raises where sizes do not fit
        return list(specs)
    return alone


def _size(size: Any, axis: int, rank: int) -> int:
    """Return a size, for a dynamic one that of the example which the program was made with."""
    if isinstance(size, int):
        return size
    return int(size.node.hint) if size.node.has_hint() else usual_size(axis, rank)


def _traceable(module: Any) -> Any:
    """Return a module with its operators replaced such that a trace records its dynamic dimensions."""
    for node in list(module.graph.nodes):
        if node.op == "call_module" and node.target == _GUARDS:
            module.graph.erase_node(node)
        elif node.op == "call_function":
            node.target = _as_written(node)
    module.recompile()
    return module


def _as_written(node: Any) -> Any:
    """Return the function that people write for an operator which makes or takes sizes; others as they are."""
    torch = need("torch")
    operator = node.target
    if operator is torch.ops.aten.sym_size.int:
        return torch.Tensor.size
    if getattr(operator, "namespace", "") != "aten" or not any(map(_is_size, node.all_input_nodes)):
        return operator
    name = str(operator).split(".")[1]  # aten.view.default
    if name == "slice":
        return _slice
    return getattr(torch.Tensor, name, None) or getattr(torch, name, operator)


def _is_size(node: Any) -> bool:
    return isinstance(node.meta.get("val"), int | need("torch").SymInt)


def _slice(tensor: Any, axis: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    return tensor[(slice(None),) * (axis % tensor.dim()) + (slice(start, end, step),)]
