"""What an export did, for people and as JSON."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.export.agreement import Agreement, shapes_text


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export did.

    Attributes:
        source: what the model was exported from.
        runtime: what it was compared with.
        exporter: the exporter's version.
        folder: where the model is.
        files: names of the files in it.
        task: its task.
        operators: how many operators its graph has.
        agreements: how it compares with its source, on inputs of each shape that was tried.
        notes: what else there is to know, a sentence each.
    """

    source: str
    runtime: str
    exporter: str
    folder: Path
    files: tuple[str, ...]
    task: str
    operators: int
    agreements: tuple[Agreement, ...]
    notes: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Yield the report, a fact a line."""
        yield f"source    {self.source}"
        yield f"exporter  pnnx {self.exporter}, {self.operators} operators"
        for agreement in self.agreements:
            shapes = shapes_text(agreement.shapes)
            largest = max((item.relative or 0.0 for item in agreement.outputs), default=0.0)
            times = max((item.times for item in agreement.outputs), default=0.0)
            noun = "outputs match" if len(agreement.outputs) > 1 else "output matches"
            yield (
                f"checked   {shapes}: {len(agreement.outputs)} {noun} {self.runtime} "
                f"(max relative error {largest:.1e}, {times:.1f} times float32 rounding)"
            )
            if agreement.tensors:
                yield (
                    f"          {agreement.matched} of {agreement.tensors} intermediate tensors match {self.runtime} "
                    f"(max relative error {agreement.largest:.1e})"
                )
        for note in self.notes:
            yield f"note      {note}"
        yield f"written   {self.folder}: {', '.join(self.files)}; task {self.task}"

    def document(self) -> dict[str, Any]:
        """Return the report as JSON can hold it."""
        return {
            "source": self.source,
            "exporter": self.exporter,
            "folder": str(self.folder),
            "files": list(self.files),
            "task": self.task,
            "operators": self.operators,
            "compared_with": self.runtime,
            "agreements": [
                {
                    "shapes": [list(shape) for shape in item.shapes],
                    "outputs": [
                        {"name": output.name, "absolute": output.absolute, "relative": output.relative}
                        for output in item.outputs
                    ],
                    "tensors": item.tensors,
                    "tensors_matched": item.matched,
                    "largest_relative_difference": item.largest,
                }
                for item in self.agreements
            ],
            "notes": list(self.notes),
        }
