"""Check of a model: whether it runs, its inputs, and whether it agrees with a reference."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.backend import Backend, choose_backend
from engine.check.archives import in_order, inputs_among, load_arrays, load_inputs
from engine.check.calibrated_inputs import calibrated_inputs
from engine.check.comparison import compare_backends, compare_layers, compare_outputs
from engine.check.outcome import print_backends, print_layers, print_outputs
from engine.check.precision_loss import compare_precision, print_precision
from engine.check.report import Report, inspect
from engine.check.shapes import choose_shapes
from engine.compiler.program.trial import trial_inputs
from engine.dtypes import Array
from engine.errors import InputError, KuiperError
from engine.graph import RuntimeGraph
from engine.model.ports import check_inputs
from engine.precision import Precision
from engine.quantization.sidecar import read_sidecar
from engine.run.verification import Verify

GOOD, BAD, UNKNOWN = 0, 1, 2
"""Results of a check, and exit codes: the model runs and agrees; it does not; the shapes of its inputs are unknown."""

Given = list[Array] | dict[str, Array]


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Options of a check.

    Attributes:
        param: the `.param` file.
        bin: the `.bin` file.
        against: files of inputs, and of the outputs that are expected for them; None for no comparison.
        layers: a file of intermediate results to compare with; None for no comparison.
        backend: what runs the model: native, numpy, or both, to compare the two; None for the default.
        precision: what compiled kernels round the operands of products to.
        threads: threads of a run.
        shapes: the shape of each input; empty for those that the file declares.
        tolerance: the largest difference that is ignored.
        ratio: the lowest ratio of signal to noise against float32, in decibels; None for no comparison.
    """

    param: Path
    bin: Path
    against: tuple[Path, Path] | None = None
    layers: Path | None = None
    backend: str | None = None
    precision: Precision = Precision.F32
    threads: int = 1
    shapes: Sequence[tuple[int, ...]] = ()
    tolerance: float = 1e-3
    ratio: float | None = None


def check_model(options: CheckOptions, show: Callable[[Report], None], step: Callable[[str], None]) -> int:
    """Check a model, and print what comparisons find; return `GOOD`, `BAD` or `UNKNOWN`.

    Args:
        options: what is checked, and how.
        show: called with the report, before comparisons.
        step: called before each step that may take seconds.

    Raises:
        KuiperError: a file of the model, or of arrays, cannot be read or does not fit.
        OSError, ValueError: as above.
    """
    backend = choose_backend(Backend.NATIVE if options.backend == "both" else options.backend)
    graph = _open(options, backend)
    inputs = _given_inputs(graph, options)
    step("compiling, and running on made-up inputs")
    report = inspect(graph, options.shapes or _shapes_of(graph, inputs))
    show(report)
    if report.unsupported or report.problem is not None:
        return BAD
    if report.unchecked is not None:
        return UNKNOWN
    if report.refused:  # the program that is not used is the one to look into
        graph = _open(options, backend, Verify.OFF)
        graph.build()
    if inputs is not None:
        step("comparing with the reference")
    different = _compare(graph, inputs, options) or bool(report.refused)
    if options.ratio is not None:
        step(f"comparing {options.precision.value} with f32")
        different |= _compare_precision(graph, inputs, options, backend, options.ratio)
    if options.backend == "both":
        step("comparing compiled kernels with numpy")
        plain = _open(options, Backend.NUMPY)
        plain.build()
        if options.against is not None:
            different |= _compare_outputs(plain, inputs, options.against[1], options.tolerance)
        different |= _compare_backends(graph, plain, inputs, options)
    return BAD if different else GOOD


def _open(options: CheckOptions, backend: Backend, verify: Verify = Verify.ALWAYS) -> RuntimeGraph:
    return RuntimeGraph(
        options.param,
        options.bin,
        backend=backend,
        threads=options.threads,
        verify=verify,
        precision=options.precision,
    )


def _given_inputs(graph: RuntimeGraph, options: CheckOptions) -> Given | None:
    """Return the caller's inputs; None without any."""
    graph.init()
    if options.against is not None:
        return load_inputs(graph, options.against[0])
    return inputs_among(graph, load_arrays(options.layers)) if options.layers is not None else None


def _shapes_of(graph: RuntimeGraph, inputs: Given | None) -> list[tuple[int, ...]]:
    if inputs is None:
        return []
    return [array.shape for array in check_inputs(graph.inputs, inputs).values()]


def _compare(graph: RuntimeGraph, inputs: Given | None, options: CheckOptions) -> bool:
    """Compare with the caller's reference; returns whether it differs."""
    different = False
    if inputs is not None and options.against is not None:
        different |= _compare_outputs(graph, inputs, options.against[1], options.tolerance)
    if inputs is not None and options.layers is not None:
        reference = load_arrays(options.layers)
        different |= print_layers(compare_layers(graph, inputs, reference, options.tolerance))
    return different


def _compare_outputs(graph: RuntimeGraph, inputs: Given | None, file: Path, tolerance: float) -> bool:
    expected = in_order(load_arrays(file))
    return print_outputs(compare_outputs(graph, inputs or [], expected, tolerance))


def _compare_backends(
    native: RuntimeGraph, plain: RuntimeGraph, inputs: Given | None, options: CheckOptions
) -> bool:
    if inputs is None:
        inputs, kind = _made_inputs(plain, options)
        print(f"inputs  {kind}")
    return print_backends(compare_backends(native, plain, inputs, options.tolerance))


def _compare_precision(
    graph: RuntimeGraph, inputs: Given | None, options: CheckOptions, backend: Backend, ratio: float
) -> bool:
    """Compare the layers with float32, on the given or synthetic inputs; returns whether a ratio is too low."""
    plain = RuntimeGraph(options.param, options.bin, backend=backend, threads=options.threads)
    plain.build()
    if inputs is None:
        inputs, kind = _made_inputs(plain, options)
        if Precision.INT8 in graph.precisions.values():
            inputs = calibrated_inputs(inputs, read_sidecar(options.param, options.bin).tensors)
            kind = "random, within the ranges of calibration"
        print(f"inputs  {kind}")
    return print_precision(compare_precision(graph, plain, inputs), ratio)


def _made_inputs(graph: RuntimeGraph, options: CheckOptions) -> tuple[dict[str, Array], str]:
    """Return the first synthetic inputs on which a graph runs, and their kind.

    Raises:
        InputError: it runs on none of them.
    """
    specs = choose_shapes(graph.inputs, options.shapes, graph.param_path).specs or ()
    trials = trial_inputs({port.operand: spec for port, spec in zip(graph.inputs, specs, strict=True)})
    problem: KuiperError | None = None
    for trial in trials:
        try:
            graph.run(trial.arrays)
        except KuiperError as error:
            problem = error
        else:
            return trial.arrays, trial.kind
    raise InputError(
        f"--backend both: no made-up inputs run on the model: {problem}; give it some by --against"
    )
