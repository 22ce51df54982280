import gc
from pathlib import Path

import numpy as np
import pytest

from engine.dtypes import PNNX_STORAGE, widen
from engine.errors import ArchiveError, ParamError
from engine.pnnx import Attribute, Graph, Operator, TensorType, read, write

FIXTURES = Path(__file__).parent / "fixtures"
EXPORTED = ["types", "values", "dynamic", "half"]


def load(name: str) -> Graph:
    return read(FIXTURES / f"{name}.param", FIXTURES / f"{name}.bin")


@pytest.mark.parametrize("name", EXPORTED)
def test_exported_models_are_written_back_equal_and_their_text_byte_for_byte(
    name: str, tmp_path: Path
) -> None:
    graph = load(name)
    write(graph, tmp_path / "copy.param", str(tmp_path / "copy.bin"))
    assert read(str(tmp_path / "copy.param"), tmp_path / "copy.bin") == graph
    assert (tmp_path / "copy.param").read_bytes() == (FIXTURES / f"{name}.param").read_bytes()


@pytest.mark.parametrize("dtype", sorted(PNNX_STORAGE.keys() - {"c32"}))
def test_attributes_of_every_type_hold_what_the_exporter_stored(dtype: str) -> None:
    operator = next(operator for operator in load("types").operators if operator.name == dtype)
    attribute = operator.attrs["data"]
    assert attribute.dtype == dtype
    stored = widen(attribute.array(), dtype)
    assert stored.tolist() == [[0, 1, 0], [1, 0, 1]]


def test_half_precision_complex_and_empty_attributes_hold_what_the_exporter_stored() -> None:
    attributes = [operator.attrs["data"] for operator in load("types").operators if operator.attrs]
    by_type = {attribute.dtype: attribute for attribute in attributes}
    assert widen(by_type["c32"].array(), "c32").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert [attribute.array().shape for attribute in attributes if attribute.shape[0] == 0] == [(0, 3)]


def test_half_precision_weights_are_read() -> None:
    linear = load("half").operators[1]
    weight, bias = linear.attrs["weight"], linear.attrs["bias"]
    assert (weight.shape, weight.dtype, bias.dtype) == ((2, 4), "f16", "f16")
    assert np.all(
        np.abs(weight.array().astype(np.float32)) <= 0.5
    )  # PyTorch's range for 4 inputs: 1 / sqrt(4)


def test_exported_parameters_have_their_types() -> None:
    params = {operator.type: operator.params for operator in load("values").operators}
    assert params["torch.einsum"] == {"equation": "ik,kj->ij"}
    assert params["F.pad"] == {"mode": "constant", "pad": (1, 2, 3, 4), "value": 1e-7}
    assert params["torch.clamp"] == {"max": 1e20, "min": None}
    assert params["F.leaky_relu"] == {"negative_slope": 0.333333343}
    assert params["F.upsample_nearest"] == {"scale_factor": (2.0, 3.11)}
    assert params["Tensor.index"] == {"expr": "[[2,1],[0,1]]"}
    assert params["pnnx.Expression"] == {"expr": "mul(@0,1.500000e+00-2.500000e+00j)"}


def test_unknown_extents_and_input_names_are_read() -> None:
    graph = load("dynamic")
    reshape = next(operator for operator in graph.operators if operator.type == "Tensor.reshape")
    assert reshape.input_names == {"input": "2", "shape": "3"}
    assert graph.operands["0"] == TensorType((None, 3, None, None), "f32")
    assert graph.operands["3"] is None


def test_attributes_keep_the_map_alive_and_are_not_copies() -> None:
    array = load("dynamic").operators[1].attrs["weight"].array()
    gc.collect()
    assert not array.flags.owndata
    assert not array.flags.writeable
    assert np.isfinite(array).all()


def test_a_graph_can_be_written_over_the_files_it_was_read_from(tmp_path: Path) -> None:
    paths = tmp_path / "m.param", tmp_path / "m.bin"
    write(load("dynamic"), *paths)
    graph = read(*paths)
    graph.operators[1].attrs["bias"] = Attribute.from_array(np.zeros(4, np.float32))
    write(graph, *paths)
    assert read(*paths) == graph
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.bin", "m.param"]


def test_written_weights_are_aligned_to_64_bytes(tmp_path: Path) -> None:
    write(load("dynamic"), tmp_path / "m.param", tmp_path / "m.bin")
    for operator in read(tmp_path / "m.param", tmp_path / "m.bin").operators:
        for attribute in operator.attrs.values():
            assert attribute.array().ctypes.data % 64 == 0


def test_attributes_of_no_type_need_no_entry(tmp_path: Path) -> None:
    (tmp_path / "m.param").write_text("7767517\n1 0\nt n 0 0 @a=(2)null @b=()null\n")
    write(Graph(), tmp_path / "empty.param", tmp_path / "m.bin")
    graph = read(tmp_path / "m.param", tmp_path / "m.bin")
    assert graph.operators[0].attrs == {"a": Attribute((2,), "null", b""), "b": Attribute((), "null", b"")}
    write(graph, tmp_path / "m.param", tmp_path / "m.bin")
    assert read(tmp_path / "m.param", tmp_path / "m.bin") == graph


def test_a_missing_file_of_the_pair_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="none.bin: cannot be read: No such file"):
        read(FIXTURES / "half.param", tmp_path / "none.bin")
    with pytest.raises(ParamError, match="none.param: cannot be read: No such file"):
        read(tmp_path / "none.param", FIXTURES / "half.bin")


@pytest.mark.parametrize(
    ("operators", "problem"),
    [
        ([Operator("t", "a", attrs={"b.c": Attribute((), "i8", b"\0")}),
          Operator("t", "a.b", attrs={"c": Attribute((), "i8", b"\0")})], "'a.b.c': two attributes would share"),
        ([Operator("t", "a", attrs={"\0": Attribute((), "i8", b"\0")})], "impossible entry name"),
        ([Operator("t", "a" * 0xFFFF, attrs={"b": Attribute((), "i8", b"\0")})], "impossible entry name"),
    ],
)  # fmt: skip
def test_entry_names_that_no_archive_can_hold_are_refused(
    operators: list[Operator], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(ArchiveError, match=problem):
        write(Graph(operators), tmp_path / "m.param", tmp_path / "m.bin")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_behind_when_writing_fails(tmp_path: Path) -> None:
    (tmp_path / "m.bin").mkdir()
    with pytest.raises(OSError, match="directory"):
        write(load("half"), tmp_path / "m.param", tmp_path / "m.bin")
    assert [path.name for path in tmp_path.iterdir()] == ["m.bin"]
