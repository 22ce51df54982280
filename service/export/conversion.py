"""From a model of PyTorch or ONNX to a folder that a server serves."""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine import Array, KuiperError, RuntimeGraph, UnsupportedOperatorError
from service.export.agreement import TOLERANCE, Agreement, compare
from service.export.description import check_description, describe
from service.export.errors import ExportError
from service.export.exporter import Exported, exporter_version, run_exporter
from service.export.folder import check_place, staged
from service.export.input_names import name_inputs
from service.export.input_spec import InputSpec, parse_input
from service.export.labels import read_labels
from service.export.leftover import explain
from service.export.merge import merge, read_param
from service.export.onnx_operators import translate_operators
from service.export.onnx_source import OnnxSource
from service.export.report import ExportReport
from service.export.second_shape import second_shapes
from service.export.source import Source
from service.export.torch_source import FactorySource, TorchScriptSource
from service.export.trial import runnable_arrays
from service.export.wishes import Wishes, check_wishes

SECONDS = 600.0
"""How long the exporter may take, if nothing else is said."""
_KINDS = "expected a TorchScript file, an ONNX file, or package.module:function"


def export(
    source: str | Path,
    folder: str | Path | None = None,
    *,
    inputs: Sequence[str | InputSpec] = (),
    task: str | None = None,
    labels: str | None = None,
    preset: str | None = None,
    tokenizer: str | Path | None = None,
    description: str | None = None,
    force: bool = False,
    seconds: float = SECONDS,
    tolerance: float = TOLERANCE,
) -> ExportReport:
    """Export a model, compare it with its source, and put it into a folder that a server serves.

    Args:
        source: a TorchScript file, an ONNX file, or `package.module:function` that makes a `torch.nn.Module`.
        folder: the model's folder; by default the one in `models` that has the source's name.
        inputs: shape and type of each input, as `1,3,224,224`, `?,3,640?,640?` or `1,128:i64`; an ONNX file says
            itself what is not given.
        task: the model's task; by default what can be told from the rest.
        labels: a file with one label per line, or `imagenet` or `coco`.
        preset: how pictures are prepared; one of `PRESETS`.
        tokenizer: a `tokenizer.json`, for a model that takes text.
        description: a sentence for people.
        force: replace a model that is there.
        seconds: how long the exporter may take.
        tolerance: largest difference that is ignored, relative to the value and to the largest of its tensor.

    Returns:
        What was written, and how it compares.

    Raises:
        ExportError: the model cannot be read, exported or run, or differs from its source. Nothing was written.
    """
    wishes = Wishes(task, labels, preset, None if tokenizer is None else Path(tokenizer), description)
    check_wishes(wishes)
    if wishes.labels is not None:
        read_labels(wishes.labels, are_characters=wishes.is_reader)
    specs = [item if isinstance(item, InputSpec) else parse_input(item) for item in inputs]
    model = open_source(source)
    place = Path(folder) if folder is not None else Path("models") / source_name(source)
    check_place(place, force=force)
    with tempfile.TemporaryDirectory(prefix="kuiper-export-") as scratch, staged(place, force=force) as made:
        done = _Export(model, model.inputs(specs), Path(scratch), seconds, tolerance).run()
        for path in (done.files.param, done.files.bin):
            shutil.copyfile(path, made / f"{place.name}.pnnx{path.suffix}")
        notes = describe(made, model, done.specs, done.outputs, wishes)
        found = check_description(made, done.graph)
        files = tuple(sorted(path.name for path in made.iterdir()))
    return ExportReport(
        source=model.title,
        runtime=model.runtime,
        exporter=exporter_version(),
        folder=place,
        files=files,
        task=found,
        operators=len(done.graph.operators),
        agreements=done.agreements,
        notes=(*filter(None, [done.files.remark]), *notes),
    )


def source_name(source: str | Path) -> str:
    """Return what a model is called after its source, if nobody says otherwise."""
    if isinstance(source, str) and ":" in source and not Path(source).exists():
        return source.rpartition(":")[2]
    return Path(source).name.split(".", maxsplit=1)[0]


def open_source(source: str | Path) -> Source:
    """Open what a model is exported from.

    Raises:
        ExportError: it is nothing that can be exported, or cannot be read.
    """
    path = Path(source)
    if path.suffix == ".onnx":
        return OnnxSource(path)
    if path.is_file() or path.suffix in (".pt", ".pth", ".torchscript", ".ts"):
        return TorchScriptSource(path)
    if isinstance(source, str) and ":" in source and not path.exists():
        return FactorySource(source)
    what = "is a folder" if path.is_dir() else "is no file"
    raise ExportError(f"{source} {what}; {_KINDS}")


@dataclass(frozen=True, slots=True)
class _Done:
    files: Exported
    graph: RuntimeGraph
    specs: Sequence[InputSpec]
    outputs: Sequence[Array]
    agreements: tuple[Agreement, ...]


@dataclass(frozen=True, slots=True)
class _Export:
    """One export: a source, what it takes, and where the exporter works."""

    source: Source
    specs: Sequence[InputSpec]
    scratch: Path
    seconds: float
    tolerance: float

    def run(self) -> _Done:
        first, outputs = runnable_arrays(self.specs, [spec.shape for spec in self.specs], self.source.run)
        second = second_shapes(self.source, self.specs)
        model = self.source.save(self.scratch, first)
        examples = [first] if second is None else [first, second]
        try:
            files = run_exporter(model, first, second, self.seconds)
            return self._checked(files, examples, outputs)
        except ExportError:
            if second is None or not isinstance(self.source, OnnxSource):
                raise
        # some ONNX files can be exported with fixed sizes alone; two of those make one with open sizes
        files = self._merged(model, first, second)
        return self._checked(files, examples, outputs)

    def _merged(self, model: Path, first: Sequence[Array], second: Sequence[Array]) -> Exported:
        one = run_exporter(model, first, None, self.seconds)
        text = read_param(one.param)
        kept = one.bin.rename(self.scratch / "first.bin")
        other = run_exporter(model, second, None, self.seconds)
        other.param.write_text(merge(text, read_param(other.param)), encoding="utf-8")
        kept.replace(other.bin)
        return Exported(other.param, other.bin, "")

    def _checked(
        self, files: Exported, examples: Sequence[Sequence[Array]], outputs: Sequence[Array]
    ) -> _Done:
        if isinstance(self.source, OnnxSource):
            translate_operators(files.param)
        name_inputs(files.param, [spec.name for spec in self.specs])
        graph = RuntimeGraph(files.param, files.bin)
        try:
            graph.build()
            agreements = tuple(
                compare(graph, self.source, arrays, self.source.run(arrays), self.tolerance)
                for arrays in examples
            )
        except UnsupportedOperatorError as error:
            raise ExportError(explain(error, self.source)) from error
        except KuiperError as error:
            raise ExportError(f"the exporter wrote a model that does not run: {error}") from error
        for agreement in agreements:
            if not agreement.agrees:
                raise ExportError(_with_remark(agreement.problem(self.source.runtime), files.remark))
        return _Done(files, graph, self.specs, outputs, agreements)


def _with_remark(problem: str, remark: str) -> str:
    return f"{problem}; {remark}" if remark else problem
