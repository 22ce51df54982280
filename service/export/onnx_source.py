"""Models of ONNX, run by onnxruntime."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from engine import Array, pnnx_name
from service.config.labels import split_labels
from service.export.errors import ExportError
from service.export.extra import need
from service.export.input_spec import DTYPES, InputSpec, usual_size
from service.export.source import Result, Source, check_count
from service.export.trial import flip_last_bits

_QUIET = 4
"""Severity from which onnxruntime logs: fatal errors alone."""
_MAX = 240
_CHARACTERS = "character"
"""Key of the metadata under which RapidOCR's conversion of PP-OCR keeps the characters, one per line."""


class OnnxSource(Source):
    """An ONNX file, with its weights in it or beside it.

    Args:
        path: the file.

    Raises:
        ExportError: it cannot be read, or is not ONNX.
    """

    runtime = "onnxruntime"

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise ExportError(f"there is no file {path}")
        onnx = need("onnx")
        self.title = f"{path.name}, ONNX"
        try:
            self._model = onnx.load(str(path))
            onnx.checker.check_model(self._model)
        except Exception as error:  # of protobuf, of the checker, of the system; each has its own
            raise ExportError(f"{path.name} is not an ONNX model: {_first_line(error)}") from error
        self._session = self._open(self._model)

    def inputs(self, given: Sequence[InputSpec]) -> list[InputSpec]:
        """Return the inputs: shapes as given, or else as the file declares them; types as the file has them."""
        declared = [self._declared(item) for item in self._model_inputs()]
        if not given:
            return declared
        check_count(given, [spec.name for spec in declared], self.title)
        return [self._checked(*pair) for pair in zip(given, declared, strict=True)]

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the outputs that onnxruntime computes."""
        return _run(self._session, arrays)

    def results(self, arrays: Sequence[Array]) -> list[Result]:
        """Return the result of each node; nothing is optimized away."""
        onnx = need("onnx")
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        nodes = [(node, name) for node in model.graph.node for name in node.output if name]
        known = {item.name for item in model.graph.output}
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for _, name in nodes if name not in known)
        lines = {name: f"{node.op_type} {node.name}".strip() for node, name in nodes}
        session = self._open(model, optimized=False)
        names = [item.name for item in session.get_outputs()]
        arrays_of = dict(zip(names, _run(session, arrays), strict=True))
        return [Result(arrays_of[name], lines[name]) for _, name in nodes if arrays_of[name].ndim]

    @contextmanager
    def perturbed(self) -> Iterator[None]:
        """Flip the last bit of each weight for the duration of the block."""
        before, session = self._model, self._session
        onnx = need("onnx")
        self._model = onnx.ModelProto()
        self._model.CopyFrom(before)
        for weight in self._model.graph.initializer:
            array = onnx.numpy_helper.to_array(weight)
            if array.dtype == np.float32:
                weight.CopyFrom(onnx.numpy_helper.from_array(flip_last_bits(array), weight.name))
        try:
            self._session = self._open(self._model)
            yield
        finally:
            self._model, self._session = before, session

    def save(self, folder: Path, arrays: Sequence[Array]) -> Path:
        """Write the model as one file."""
        del arrays
        path = folder / "model.onnx"
        try:
            need("onnx").save(self._model, str(path))
        except ValueError as error:  # protobuf writes no more than 2 GB
            raise ExportError(f"{self.title} is too large for the exporter: {_first_line(error)}") from error
        return path

    def characters(self) -> list[str]:
        """Return the characters that PP-OCR's tools note in the file; none where there are none."""
        noted = {item.key: item.value for item in self._model.metadata_props}.get(_CHARACTERS, "")
        return split_labels(noted, are_characters=True) if noted else []

    def lines_of(self, kind: str) -> list[str]:
        """Return the nodes that are of a type."""
        return [
            f"node {node.name or node.output[0]}" for node in self._model.graph.node if node.op_type == kind
        ]

    def _open(self, model: Any, *, optimized: bool = True) -> Any:
        runtime = need("onnxruntime")
        options = runtime.SessionOptions()
        options.log_severity_level = _QUIET
        if not optimized:
            options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            return runtime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has classes of its own for each problem
            raise ExportError(f"{self.title}: onnxruntime cannot run it: {_first_line(error)}") from error

    def _model_inputs(self) -> list[Any]:
        weights = {item.name for item in self._model.graph.initializer}
        return [item for item in self._model.graph.input if item.name not in weights]

    def _declared(self, item: Any) -> InputSpec:
        tensor = item.type.tensor_type
        dtype = pnnx_name(need("onnx").helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        if dtype not in DTYPES:
            raise ExportError(
                f"{self.title}: input {item.name!r} is of {dtype}; expected {', '.join(DTYPES)}"
            )
        return input_of([size.dim_value for size in tensor.shape.dim], dtype, item.name)

    def _checked(self, given: InputSpec, declared: InputSpec) -> InputSpec:
        if len(given.shape) != len(declared.shape):
            raise ExportError(
                f"{self.title}: input {declared.name!r} is {declared}, and --input says {given}"
            )
        for axis, size in enumerate(declared.shape):
            if not declared.is_dynamic[axis] and (given.is_dynamic[axis] or given.shape[axis] != size):
                raise ExportError(
                    f"{self.title}: input {declared.name!r} is {declared}, and --input says {given}; size {size} at "
                    f"axis {axis} is fixed in the file: give {size}, or export the ONNX file again with dynamic axes"
                )
        return InputSpec(given.shape, given.is_dynamic, declared.dtype, declared.name)


def input_of(sizes: Sequence[int], dtype: str, name: str) -> InputSpec:
    """Return an input of these sizes, of which ONNX writes dynamic ones as 0; they get a usual size."""
    shape = tuple(size if size > 0 else usual_size(axis, len(sizes)) for axis, size in enumerate(sizes))
    return InputSpec(shape, tuple(size <= 0 for size in sizes), dtype, name)


def _run(session: Any, arrays: Sequence[Array]) -> list[Array]:
    names = [item.name for item in session.get_inputs()]
    try:
        outputs = session.run(None, dict(zip(names, arrays, strict=True)))
    except Exception as error:  # onnxruntime has classes of its own for each problem
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ExportError(f"the model does not run on {shapes}: {_first_line(error)}") from error
    return [np.asarray(output) for output in outputs]


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:_MAX]
