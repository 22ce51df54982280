"""From a model of PyTorch or ONNX to a folder that a server serves."""

import shutil
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from service.export.description import check_description, describe
from service.export.errors import ExportError, TimeLimitError
from service.export.exporter import exporter_version
from service.export.folder import check_place, staged
from service.export.input_spec import InputSpec, less_dynamic, parse_input
from service.export.labels import read_labels
from service.export.opening import open_source, source_name
from service.export.report import ExportReport
from service.export.source import Source
from service.export.translation import Translated, Translation
from service.export.wishes import Wishes, check_wishes
from service.repository.load_progress import Step, go_on

SECONDS = 600.0
"""How long the exporter may take, if nothing else is said."""
_MAX_SHOWN = 240


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
    tolerance: float = 0.0,
    step: Step = go_on,
) -> ExportReport:
    """Export a model, compare it with its source, and put it into a folder that a server serves.

    Args:
        source: a file of `torch.export` (`.pt2`), TorchScript or ONNX; or a class of `torch.nn.Module` or a function
            that makes one, as `package.module:function` or `file.py:Class`.
        folder: the model's folder; by default the one in `models` that has the source's name.
        inputs: shape and type of each input, as `1,3,224,224`, `?,3,640?,640?` or `1,128:i64`; by default those that
            the source states, whose dynamic dimensions become fixed where the model cannot be exported with them.
        task: the model's task; by default inferred from the rest.
        labels: a file with one label per line, or `imagenet` or `coco`.
        preset: how pictures are prepared; one of `PRESETS`.
        tokenizer: a `tokenizer.json`, for a model that takes text.
        description: a sentence for people.
        force: replace a model that is there.
        seconds: how long the exporter may take.
        tolerance: largest difference that is ignored, relative to the magnitude of its tensor; with one, tensors on the
            way to the outputs are not required to match.
        step: called before each step.

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
        done, remark = _exported(model, specs, Path(scratch), seconds, tolerance, step)
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
        notes=(*filter(None, [*done.notes, remark]), *notes),
    )


def _exported(
    source: Source, given: Sequence[InputSpec], scratch: Path, seconds: float, tolerance: float, step: Step
) -> tuple[Translated, str]:
    """Export a model; return what was made, and which dynamic dimensions had to become fixed, as a sentence.

    Dimensions that the user asked to be dynamic are; those that are so by default become fixed where that fails.
    """
    specs = [replace(spec, dtype=spec.dtype or "f32") for spec in source.inputs(given)]
    problem: ExportError | None = None
    for wanted in [specs] if given else less_dynamic(specs, source.known.max_length):
        try:
            done = Translation(source, wanted, scratch, seconds, tolerance, step).run()
        except TimeLimitError:
            raise
        except ExportError as error:
            problem = problem or error
            continue
        shown = " ".join(map(str, wanted))
        return (
            done,
            f"its inputs are {shown}: with more dynamic dimensions, {_short(problem)}" if problem else "",
        )
    raise problem or ExportError(f"{source.title} has no inputs")


def _short(problem: ExportError) -> str:
    return textwrap.shorten(str(problem), _MAX_SHOWN, placeholder=" …")
