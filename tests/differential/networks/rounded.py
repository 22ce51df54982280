"""Runs networks in bfloat16 and int8 at sizes that nobody tuned for, against PyTorch that rounds the same operands.

Every tensor that a program stores is compared with what PyTorch makes, in double precision, of the tensors before it.
It may be off by what rounding to float32 explains; of 8-bit integers, those alone may differ that lie half-way between
two, as near as float32 shows. Outputs are compared as a whole besides, and are the same to the bit for all threads.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
import torch

from engine import KuiperError, Quantization, RuntimeGraph, TraceLevel
from engine.dtypes import Array
from engine.quantization.tensor_scale import TensorScale
from engine.spec import TensorSpec, tensor_spec
from tests.differential.comparison import compiling_for
from tests.differential.exporting import export
from tests.differential.layouts import LAYOUTS
from tests.differential.modes import rounded_mode_of
from tests.differential.networks.exported_code import ExportedCode, compute_in_double
from tests.differential.networks.rounding_in_torch import (
    RoundedRun,
    Rounding,
    bfloat16,
    integer_rounding,
    integers,
)
from tests.differential.networks.table import Network, Size
from tests.differential.opening import open_graph
from tests.differential.rounding import ROUNDED, always_rounding
from tests.golden.make import flatten
from tests.golden.rounded_networks import calibrated, distance

_MAX = 60_000
"""Elements of batch, rows and columns together: PyTorch computes each size four times in double precision."""
_SHARE = 2e-6
"""Part of a tensor's largest element that float32 may be off, and how many times the change that a run shows whose
tensors are off by as much as float32 rounds them."""
_GROWTH = 2.0
_LUCK = 4.0
"""How many times the distance of outputs is allowed that ties make which fall the other way."""
_LOSS_OF_LAYER = {"bf16": 2.0**-7, "int8": 2.0**-5}
_EXPORT = 2e-5
"""Share of the outputs by which the exporter's code may differ from the module, of which it folds weights."""


@dataclass(frozen=True, slots=True)
class RoundedNetworkRun:
    """One run of a network in a precision, compared with PyTorch.

    Attributes:
        size: the size of its inputs.
        how: precision, vector width, threads and layout.
        tensors: how many tensors were compared.
        ties: integers that PyTorch rounds the other way, and integers in all.
        share: the largest difference of a tensor of float32, as a share of what was allowed.
        off: distance of the outputs from PyTorch's, in Euclidean norms.
        text: what was wrong; empty where nothing was.
    """

    size: Size
    how: str
    tensors: int = 0
    ties: tuple[int, int] = (0, 0)
    share: float = 0.0
    off: float = 0.0
    text: str = ""


class _Wrong(Exception):  # a finding rather than an error of this code
    """Something is not as it should be."""


def run_rounded(
    network: Network, seed: int, count: int, precisions: Sequence[str] = ROUNDED
) -> Iterator[RoundedNetworkRun]:
    """Run a network in each precision at as many sizes; yields what came out."""
    module = network.construct()
    sized = replace(network, sizes=(), most=min(network.most, _MAX))
    first, second = ((n, *(network.fixed or edges)) for n, edges in ((1, (64, 64)), (2, (96, 128))))
    torch.set_num_threads(1)  # threads that wait for each other in a loop take the time of others
    with tempfile.TemporaryDirectory() as folder:
        param = export(module, network.arrays(first), network.arrays(second), Path(folder))
        code = ExportedCode(param)
        plain = open_graph(param, "numpy")
        quantization = calibrated(plain, network.arrays(first))
        start = Random(f"{seed}/{network.name}").randrange(1000)
        for precision in precisions:
            for place, size in enumerate(sized.draw_sizes(seed + ROUNDED.index(precision), count), start):
                given = quantization if precision == "int8" else None
                yield _run_size(network, module, code, param, precision, given, size, place)


def _run_size(
    network: Network,
    module: torch.nn.Module,
    code: ExportedCode,
    param: Path,
    precision: str,
    quantization: Quantization | None,
    size: Size,
    place: int,
) -> RoundedNetworkRun:
    mode = rounded_mode_of(place, precision)
    others, rounds = (2, 3)[place % 2], bool(place % 3)
    how = f"{precision}, {mode.target.name}, 1 and {others} threads, {mode.layout}{', all' if rounds else ''}"
    inputs = network.arrays(size)
    found = RoundedNetworkRun(size, how)
    try:
        _check_code(code, module, inputs)
        with ExitStack() as stack:
            stack.enter_context(compiling_for(mode.target))
            stack.enter_context(always_rounding(rounds))
            graphs = [
                open_graph(param, precision=precision, quantization=quantization, threads=threads)
                for threads in (1, others)
            ]
            observed = _observe(graphs, inputs, [LAYOUTS[mode.layout](array) for array in inputs])
        rounding = _rounding(graphs[0], observed, quantization)
        found = _compare(found, code, inputs, rounding, observed)
        return replace(
            found, off=_compare_outputs(code, inputs, rounding, observed, _LOSS_OF_LAYER[precision])
        )
    except (_Wrong, KuiperError) as error:
        return replace(found, text=f"{type(error).__name__}: {error}")


def _check_code(code: ExportedCode, module: torch.nn.Module, inputs: Sequence[Array]) -> None:
    """Check that the exporter's code computes what the module does."""
    with torch.no_grad():
        wanted = flatten(module(*(torch.from_numpy(array.copy()) for array in inputs)))
    off = distance(code.run(inputs, compute_in_double), wanted)
    if not off <= _EXPORT:
        raise _Wrong(f"the exporter's code is off from the module by {off:.2g}")


@dataclass(frozen=True, slots=True)
class _Observed:
    """What a program gave.

    Attributes:
        outputs: of a run that was not observed.
        tensors: all of float32 that it stores, by operand.
        precisions: in what the operator of an operand was computed.
    """

    outputs: list[Array]
    tensors: dict[str, Array]
    precisions: dict[str, str]


def _observe(graphs: Sequence[RuntimeGraph], inputs: Sequence[Array], given: Sequence[Array]) -> _Observed:
    graph = graphs[0]
    specs = [tensor_spec(array) for array in inputs]
    outcomes = [each.forward(list(given)) for each in graphs]
    plan, fed = graph.plan(specs), {port.operand for port in graph.inputs}
    floats = {
        name
        for name, spec in plan.specs.items()
        if isinstance(spec, TensorSpec) and spec.dtype == np.float32 and name not in fed
    }
    stored = [name for name, end in graph.observable(specs).items() if name == end and name in floats]
    result = graph.run(list(given), capture=stored, trace=TraceLevel.ON)
    refused = [str(refusal) for each in graphs for refusal in each.verification.refused]
    if refused or result.trace is None:
        raise _Wrong(f"not compiled: {refused}")
    if set(result.captured_by.values()) != {"native"}:
        raise _Wrong("tensors of another program were captured")
    for outputs in (*outcomes[1:], result.outputs):
        if [array.tobytes() for array in outputs] != [array.tobytes() for array in outcomes[0]]:
            raise _Wrong("other bits for another number of threads, or where tensors are captured")
    tensors = {name: np.ascontiguousarray(result.captured[name]) for name in stored}
    precisions = {layer.outputs[0].name: layer.precision for layer in result.trace.layers if layer.outputs}
    return _Observed(outcomes[0], tensors, precisions)


def _rounding(graph: RuntimeGraph, observed: _Observed, quantization: Quantization | None) -> Rounding:
    if quantization is not None:
        return integer_rounding(quantization, graph)
    return Rounding({name: kind for name, kind in observed.precisions.items() if kind == "bf16"})


def _compare(
    found: RoundedNetworkRun,
    code: ExportedCode,
    inputs: Sequence[Array],
    rounding: Rounding,
    observed: _Observed,
) -> RoundedNetworkRun:
    """Compare every tensor with what PyTorch makes of those before it."""
    exact, moved = (RoundedRun(rounding, observed.tensors, disturbs) for disturbs in (False, True))
    exact.run(code, inputs)
    moved.run(code, inputs)
    ties, count, largest = 0, 0, 0.0
    for name, wanted in exact.seen.items():
        ours = torch.from_numpy(observed.tensors[name]).double()
        if ours.shape != wanted.shape:
            raise _Wrong(f"operand {name}: {tuple(ours.shape)}; expected {tuple(wanted.shape)}")
        if not wanted.numel():
            continue
        most = _SHARE * float(wanted.abs().max()) + _GROWTH * float((wanted - moved.seen[name]).abs().max())
        low, high, scale = wanted - most, wanted + most, rounding.scales.get(name)
        if scale is not None:
            whole = _integers_of(ours, scale)
            is_right = (whole >= integers(low, scale)) & (whole <= integers(high, scale))
            ties += int((whole != integers(wanted, scale)).sum())
            count += whole.numel()
        elif _is_bf16(observed.tensors[name]):
            is_right = (ours >= bfloat16(low)) & (ours <= bfloat16(high))
        else:
            is_right = (ours >= low) & (ours <= high)
            largest = max(largest, float((ours - wanted).abs().max()) / (most + 1e-300))
        if not is_right.all():
            bad, off = int((~is_right).sum()), float((ours - wanted).abs().max())
            raise _Wrong(
                f"operand {name}: {bad} of {ours.numel()} off, by {off:.3g} at most; {most:.3g} allowed"
            )
    if not exact.seen.keys() >= observed.tensors.keys():
        raise _Wrong(f"operands {sorted(observed.tensors.keys() - exact.seen.keys())} were not compared")
    return replace(found, tensors=len(exact.seen), ties=(ties, count), share=largest)


def _integers_of(numbers: torch.Tensor, scale: TensorScale) -> torch.Tensor:
    """Return the integers that numbers are which stand for such."""
    step = float(torch.tensor(scale.scale, dtype=torch.float32))
    return torch.round(numbers / step) + scale.zero_point


def _is_bf16(array: Array) -> bool:
    """Whether all numbers of a tensor are of bfloat16, as those are that a program stores in it."""
    return not (array.view(np.uint32) & 0xFFFF).any()


def _compare_outputs(
    code: ExportedCode, inputs: Sequence[Array], rounding: Rounding, observed: _Observed, loss: float
) -> float:
    """Compare the outputs with those of a run of PyTorch that is given nothing but the inputs."""
    wanted = RoundedRun(rounding).run(code, inputs)
    moved = RoundedRun(rounding, disturbs=True).run(code, inputs)
    off = distance(observed.outputs, wanted)
    most = max(loss * len(rounding.products) ** 0.5, _LUCK * distance(moved, wanted))
    if not off <= most:
        raise _Wrong(f"outputs are off by {off:.2g}; at most {most:.2g}")
    return off
