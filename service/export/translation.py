"""From a source to a graph that computes the same: the exporter, repairs of what it gets wrong, and the comparison."""

import itertools
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine import Array, KuiperError, RuntimeGraph, UnsupportedOperatorError
from service.export.agreement import Agreement, Reference, compare, reference_of, shapes_text
from service.export.errors import ExportError, TimeLimitError
from service.export.exporter import Exported, run_exporter
from service.export.input_names import fix_sizes, name_inputs
from service.export.input_spec import InputSpec, less_dynamic
from service.export.leftover import explain
from service.export.merge import merge, read_param
from service.export.onnx_operators import translate_operators
from service.export.onnx_source import OnnxSource
from service.export.repair import repair, restore
from service.export.second_shape import dynamic_specs, further_inputs, is_dynamic, second_inputs
from service.export.source import Source
from service.export.trial import Trial
from service.repository.load_progress import Step

_SECOND_SHAPES = 3
"""Second shapes that are tried at most."""
_REPAIRS = 8
"""How often a graph is repaired at most; what was hidden by one difference shows when that is gone."""
_SHOWN, _MAX = 4, 160
_FIXED = "exported with dynamic sizes, which were fixed afterwards: with fixed ones the exporter writes another model"


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One way to export a model.

    Attributes:
        second: inputs of other sizes than the first, whose differences are the dynamic sizes; None for none.
        is_merged: whether the model is exported with each of the two, and the graphs merged.
        fixes_sizes: whether the sizes of the first are put back afterwards.
    """

    second: Sequence[Array] | None = None
    is_merged: bool = False
    fixes_sizes: bool = False

    @property
    def note(self) -> str:
        """What there is to know of it, as a sentence; empty where nothing is."""
        return _FIXED if self.fixes_sizes else ""


@dataclass(frozen=True, slots=True)
class Translated:
    """A graph that computes what its source computes.

    Attributes:
        files: the graph.
        graph: the same, built.
        specs: its inputs.
        outputs: what the source makes of an example.
        agreements: how the two compare, on inputs of each shape that was tried.
        notes: what else there is to know, a sentence each.
    """

    files: Exported
    graph: RuntimeGraph
    specs: Sequence[InputSpec]
    outputs: Sequence[Array]
    agreements: tuple[Agreement, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Translation:
    """One export.

    Attributes:
        source: the model.
        specs: what it takes.
        scratch: the folder in which the exporter works.
        seconds: how long the exporter may take.
        tolerance: largest difference that is ignored, relative to the magnitude of a tensor.
        step: called before each step.
    """

    source: Source
    specs: Sequence[InputSpec]
    scratch: Path
    seconds: float
    tolerance: float
    step: Step

    def run(self) -> Translated:
        """Export the model.

        Raises:
            ExportError: it does not run, cannot be exported, or what was exported differs.
        """
        shapes = [spec.shape for spec in self.specs]
        self.step(f"running {self.source.title} on {shapes_text(shapes)}")
        trial = Trial(self.specs, shapes, self.source.run)
        first = trial.arrays(shapes)
        model = self.source.save(self.scratch, first)
        further = list(further_inputs(self.source, self.specs, trial))
        problem: ExportError | None = None
        for attempt in self._attempts(trial):
            try:
                files = self._exported(model, first, attempt)
                return self._checked(files, first, further, attempt.note)
            except TimeLimitError:
                raise
            except ExportError as error:
                problem = problem or error
                self.step("that differs: " + textwrap.shorten(str(error), _MAX, placeholder=" …"))
        raise problem or ExportError(f"{self.source.title} cannot be exported")

    def _attempts(self, trial: Trial) -> Iterator[_Attempt]:
        """Yield ways to export, the plainest first."""
        is_onnx = isinstance(self.source, OnnxSource)
        if is_dynamic(self.specs):
            count = 1 if is_onnx else _SECOND_SHAPES  # other shapes do not help with ONNX files
            for second in itertools.islice(second_inputs(self.source, self.specs, trial), count):
                yield _Attempt(second)
                if is_onnx:
                    # some ONNX files can be exported with fixed sizes alone; two of those make one with dynamic sizes
                    yield _Attempt(second, is_merged=True)
            return
        yield _Attempt()
        wider = dynamic_specs(self.source, self.specs, trial)
        for specs in less_dynamic(wider, None):
            # what depends on fixed sizes alone the exporter takes for constants, and writes some of these wrong
            if is_dynamic(specs) and not is_onnx:
                yield _Attempt(next(second_inputs(self.source, specs, trial)), fixes_sizes=True)

    def _exported(self, model: Path, first: Sequence[Array], attempt: _Attempt) -> Exported:
        self.step("exporting with pnnx" + ("" if attempt.second is None else ", dynamic sizes"))
        if attempt.is_merged and attempt.second is not None:
            files = self._merged(model, first, attempt.second)
        else:
            files = run_exporter(model, first, attempt.second, self.seconds)
        if isinstance(self.source, OnnxSource):
            translate_operators(files.param)
        name_inputs(files.param, [spec.name for spec in self.specs])
        restore(files, self.source)
        if attempt.fixes_sizes:
            fix_sizes(files.param, [spec.shape for spec in self.specs])
        return files

    def _merged(self, model: Path, first: Sequence[Array], second: Sequence[Array]) -> Exported:
        one = run_exporter(model, first, None, self.seconds)
        text = read_param(one.param)
        kept = one.bin.rename(self.scratch / "first.bin")
        other = run_exporter(model, second, None, self.seconds)
        other.param.write_text(merge(text, read_param(other.param)), encoding="utf-8")
        kept.replace(other.bin)
        return Exported(other.param, other.bin, "")

    def _checked(
        self, files: Exported, first: Sequence[Array], further: Sequence[Sequence[Array]], note: str
    ) -> Translated:
        """Build a graph, repair it, and compare it on all inputs."""
        reference = reference_of(self.source, first)
        graph, agreement = self._compared(files, reference)
        repaired: list[str] = []
        for _ in range(_REPAIRS):
            changed = repair(files, agreement.missing, repaired)
            if not changed:
                break
            repaired += changed
            graph, agreement = self._compared(files, reference)
        outputs = [output.array for output in reference.outputs]
        agreements = [self._required(agreement, files.remark)]
        for inputs in further:
            del (
                graph,
                reference,
                agreement,
            )  # the source's weights and the graph's need not take memory at once
            reference = reference_of(self.source, inputs)
            graph, agreement = self._compared(files, reference)
            agreements.append(self._required(agreement, files.remark))
        notes = tuple(filter(None, (files.remark, note, _repairs(repaired))))
        return Translated(files, graph, self.specs, outputs, tuple(agreements), (*notes, *graph.warnings))

    def _compared(self, files: Exported, reference: Reference) -> tuple[RuntimeGraph, Agreement]:
        self.source.rest(self.scratch)
        graph = RuntimeGraph(files.param, files.bin, backend="numpy")
        try:
            graph.build()
        except UnsupportedOperatorError as error:
            raise ExportError(explain(error, self.source)) from error
        except KuiperError as error:
            raise ExportError(f"the exporter wrote a model that does not run: {error}") from error
        return graph, self._run(graph, reference)

    def _run(self, graph: RuntimeGraph, reference: Reference) -> Agreement:
        self.step(f"comparing with {self.source.runtime} on {shapes_text(reference.shapes)}")
        try:
            return compare(graph, reference, self.tolerance)
        except KuiperError as error:
            shapes = shapes_text(reference.shapes)
            raise ExportError(f"the exporter wrote a model that does not run on {shapes}: {error}") from error

    def _required(self, agreement: Agreement, remark: str) -> Agreement:
        """Return an agreement, if it is one.

        Raises:
            ExportError: it is none.
        """
        if not agreement.agrees and not (self.tolerance and agreement.outputs_agree):
            problem = agreement.problem(self.source.runtime)
            raise ExportError(f"{problem}; {remark}" if remark else problem)
        return agreement


def _repairs(names: Sequence[str]) -> str:
    """Say what was repaired; nothing where nothing was."""
    changed = sorted(name for name in set(names) if names.count(name) == 1)
    listed = ", ".join(changed[:_SHOWN]) + (", …" if len(changed) > _SHOWN else "")
    return (
        f"repaired where the exporter wrote another formula than the source has: {listed}" if changed else ""
    )
