"""A source and an exporter that need no packages: a linear layer, which numpy computes."""

import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from engine import Array
from engine.pnnx.archive_writer import write_archive
from service.export.errors import ExportError
from service.export.input_spec import InputSpec
from service.export.source import Result, Source
from service.export.trial import flip_last_bits

WEIGHT = np.arange(12, dtype=np.float32).reshape(3, 4) / 8
BIAS = np.array([1, -2, 3], np.float32)


@dataclass
class LinearSource(Source):
    """A linear layer of four features and three classes, with a batch of any size up to `most`."""

    most: int = 8
    weight_of_class: Array = field(default_factory=lambda: WEIGHT)
    title: str = "linear, a stand-in"
    runtime: str = "numpy"

    def inputs(self, given: Sequence[InputSpec]) -> list[InputSpec]:
        return list(given) or [InputSpec((1, 4), (True, False))]

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        if arrays[0].shape[1:] != (4,) or len(arrays[0]) > self.most:
            raise ExportError(f"the model does not run on {arrays[0].shape}: 4 features are expected")
        return [arrays[0] @ self.weight_of_class.T + BIAS]

    def results(self, arrays: Sequence[Array]) -> list[Result]:
        return [Result(array, "net.py:3 in forward") for array in self.run(arrays)]

    @contextmanager
    def perturbed(self) -> Iterator[None]:
        self.weight_of_class = flip_last_bits(WEIGHT)
        yield
        self.weight_of_class = WEIGHT

    def save(self, folder: Path, arrays: Sequence[Array]) -> Path:
        del arrays
        path = folder / "model.pt"
        path.write_bytes(b"a module")
        return path

    def lines_of(self, kind: str) -> list[str]:
        return [f"net.py:7 in forward, {kind}"]


def write_files(folder: Path, bias: Array = BIAS, kind: str = "nn.Linear", batch: str = "?") -> None:
    """Write the files that an exporter makes of the layer."""
    (folder / "linear.param").write_text(
        "7767517\n3 2\n"
        f"pnnx.Input in 0 1 0 #0=({batch},4)f32\n"
        f"{kind} head 1 1 0 1 bias=True in_features=4 out_features=3 @bias=(3)f32 @weight=(3,4)f32 "
        f"#0=({batch},4)f32 #1=({batch},3)f32\n"
        f"pnnx.Output out 1 0 1 #1=({batch},3)f32\n"
    )
    entries = {"head.bias": bias, "head.weight": WEIGHT}
    write_archive(
        folder / "linear.bin", [(name, memoryview(array.tobytes())) for name, array in entries.items()]
    )


def make_exporter(folder: Path, script: str) -> Path:
    """Write a program in place of pnnx: `files` is the folder of `write_files`, `model` the file without suffix."""
    path = folder / "pnnx"
    head = f"""\
        #!{sys.executable}
        import os, pathlib, shutil, sys, time
        files, model = pathlib.Path({str(folder)!r}), pathlib.Path(sys.argv[1]).stem
        def write():
            for suffix in ("param", "bin"):
                shutil.copy(files / f"linear.{{suffix}}", f"{{model}}.pnnx.{{suffix}}")
        """
    path.write_text(textwrap.dedent(head) + textwrap.dedent(script))
    path.chmod(0o755)
    return path


def names_in(folder: Path) -> list[str]:
    """Return the names of what lies in a folder."""
    return sorted(path.name for path in folder.iterdir())
