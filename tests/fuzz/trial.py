"""Whatever a model file says: read it, build, plan, compile and run it, return what is not the engine's own error."""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import engine
from engine import KuiperError, RuntimeGraph, TensorSpec, TraceLevel, pnnx
from engine.dtypes import Array

MAX_RUN_BYTES = 1 << 26
_ENGINE = str(Path(engine.__file__).parent)


@dataclass(frozen=True)
class Finding:
    """Something that must not be.

    Attributes:
        kind: what went wrong and where, the same for all models that go wrong alike.
        detail: the traceback or the refusal.
    """

    kind: str
    detail: str


def try_files(param: Path, archive: Path, inputs: Sequence[Array]) -> Finding | None:
    """Do with a pair of files all that a server does; None where nothing but the engine's errors came of it."""
    try:
        return _run(param, archive, inputs)
    except KuiperError:
        return None
    except Exception as error:  # any other is what is looked for
        return Finding(_place(error), traceback.format_exc())


def try_graph(graph: pnnx.Graph, inputs: Sequence[Array], folder: Path) -> Finding | None:
    """Write a model and try it; None as well where the format cannot say it."""
    param, archive = folder / "m.param", folder / "m.bin"
    try:
        pnnx.write(graph, param, archive)
    except (KuiperError, ValueError):
        return None
    return try_files(param, archive, inputs)


def _run(param: Path, archive: Path, inputs: Sequence[Array]) -> Finding | None:
    layers = RuntimeGraph(param, archive, backend="numpy", max_run_bytes=MAX_RUN_BYTES)
    layers.build()
    str(layers), layers._repr_html_()
    layers.declared_plan()
    specs = [TensorSpec(array.shape, array.dtype) for array in inputs]
    plan = layers.plan(specs)
    _ = plan.multiply_adds, plan.peak_bytes
    try:
        expected = layers.forward(list(inputs))
    except KuiperError:
        expected = None
    native = RuntimeGraph(param, archive, backend="native", max_run_bytes=MAX_RUN_BYTES)
    native.build()
    native.prepare(specs)
    for refusal in native.verification.refused:
        if refusal.operator is None or "failed" in refusal.reason:
            return Finding(f"refused: {refusal.reason[:120]}", str(refusal))
    native.observable(specs)
    captured = list(native.operands)[:20]
    try:
        got = native.run(list(inputs), trace=TraceLevel.STATISTICS, capture=captured).outputs
    except KuiperError:
        if expected is None:
            raise
        return Finding("native run refuses what numpy runs", traceback.format_exc())
    if expected is None:
        return None
    for array, wanted in zip(got, expected, strict=True):
        if (array.shape, array.dtype) != (wanted.shape, wanted.dtype):
            return Finding(
                "native shape differs", f"{array.shape} {array.dtype}, {wanted.shape} {wanted.dtype}"
            )
    return None


def _place(error: BaseException) -> str:
    """Word an exception by its type and the last place in the engine that it passed."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(_ENGINE)
    ]
    last = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}:{last.name}: {last.line}"
