"""Makes the golden data of the case table from PyTorch and the exporter.

Run: python -m tests.golden.make [FAMILY …] [--only TEXT]     (needs the `train` extra)

Per family one file, `tests/golden/families/FAMILY.npz`: per case the exported `.param` and `.bin` as bytes, and per
input set the inputs and what PyTorch computed. With --only, cases whose id lacks the text keep their data.
"""

import argparse
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.dtypes import Array
from tests.golden.case import LayerCase
from tests.golden.cases import families
from tests.golden.data import DATA, run_key
from tests.golden.written import write_graph

Arrays = dict[str, Array]


class ExportError(Exception):
    """The exporter failed, or fused the operator away: the case is left out, and said so."""


def exporter() -> str:
    """Find the exporter's own binary: the `pnnx` command around it takes seconds to start."""
    package = find_spec("pnnx")
    if package is None or package.origin is None:
        raise SystemExit("pnnx is not installed: pip install -e '.[train]'")
    return str(Path(package.origin).with_name("pnnx"))


def shape_option(key: str, arrays: list[Array]) -> str:
    """Word an `inputshape=[1,3]f32,[2]i64` option."""
    names = {"float32": "f32", "float64": "f64", "float16": "f16", "complex64": "c64", "complex128": "c128"}
    names |= {f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)} | {"uint8": "u8", "bool": "bool"}
    shapes = (f"[{','.join(map(str, a.shape))}]{names[str(a.dtype)]}" for a in arrays)
    return f"{key}={','.join(shapes)}"


def export(model: Any, case: LayerCase, folder: Path) -> tuple[bytes, bytes]:
    """Trace a model, export it, and return the bytes of its .param and .bin."""
    arrays = case.draw(0)
    traced = torch.jit.trace(model, tuple(map(torch.from_numpy, arrays)), check_trace=False)
    path = folder / "case.pt"
    traced.save(str(path))
    options = [shape_option("inputshape", arrays), f"fp16={int(case.fp16)}", *case.export]
    done = subprocess.run(
        [exporter(), str(path), *options], capture_output=True, text=True, timeout=120, check=False
    )
    param, archive = folder / "case.pnnx.param", folder / "case.pnnx.bin"
    if not param.exists() or not archive.exists():  # it may fail later, on files of other formats
        raise ExportError(f"the exporter failed\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    text = param.read_text()
    if not any(line.split()[:1] == [case.type] for line in text.splitlines()):
        raise ExportError(f"no {case.type} in the exported graph\n{text}")
    if case.outputs is not None:
        text = "".join(
            f"{line} outputs={case.outputs}\n" if line.split()[:1] == [case.type] else f"{line}\n"
            for line in text.splitlines()
        )
    return text.encode(), archive.read_bytes()


def flatten(value: Any) -> list[Array]:
    """Flatten nested tuples of tensors into arrays, in order."""
    if isinstance(value, tuple | list):
        return [array for item in value for array in flatten(item)]
    return [value.detach().resolve_conj().resolve_neg().contiguous().numpy()]


def make_case(case: LayerCase) -> Arrays:
    """Export one case and run it in PyTorch."""
    torch.manual_seed(0)
    model = case.build(torch).eval()
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        param, archive = (write_graph if case.graph else export)(model, case, Path(folder))
        made: Arrays = {
            f"{case.id}/param": np.frombuffer(param, np.uint8),
            f"{case.id}/bin": np.frombuffer(archive, np.uint8),
        }
        for run in range(len(case.runs)):
            arrays = case.draw(run)
            outputs = flatten(model(*(torch.from_numpy(array.copy()) for array in arrays)))
            made |= {run_key(case.id, run, "in", i): array for i, array in enumerate(arrays)}
            made |= {run_key(case.id, run, "out", i): array for i, array in enumerate(outputs)}
    return made


def make_family(name: str, cases: list[LayerCase], only: str) -> None:
    """Write one family's file, keeping the data of cases that `only` leaves out."""
    path = DATA / f"{name}.npz"
    kept: Arrays = {}
    if only and path.exists():
        with np.load(path) as old:
            kept = {key: old[key] for key in old.files}
    made: Arrays = {}
    for case in cases:
        if only in case.id:
            try:
                made |= make_case(case)
            except ExportError as error:
                print(f"{case.id}: {error}")
        else:
            made |= {key: array for key, array in kept.items() if key.startswith(f"{case.id}/")}
    np.savez_compressed(path, **made)  # type: ignore[arg-type]  # numpy types the keywords as options too
    print(f"{name}: {len(cases)} cases, {path.stat().st_size // 1024} KiB")


def main() -> None:
    """Make the families named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    DATA.mkdir(exist_ok=True)
    for name, cases in families().items():
        if not arguments.families or name in arguments.families:
            make_family(name, cases, arguments.only)


if __name__ == "__main__":
    main()
