"""What the shape rules of layers over tensors refuse, and how they word it."""

from typing import Any

import pytest

from engine import LayerError
from engine.spec import UNKNOWN
from tests.cases import check_each
from tests.engine.layers.bound import infer, spec

X = spec(2, 3, 4)
I = spec(2, dtype="i8")  # noqa: E741  # indices
M = spec(2, 3, dtype="?")

Refusal = tuple[str, dict[str, Any], dict[str, Any], str]

REFUSED: list[Refusal] = [
    (
        "torch.flatten",
        {"input": X},
        {"start_dim": 3},
        "'start_dim': got 3; expected a dimension from -3 to 2",
    ),
    (
        "torch.flatten",
        {"input": X},
        {"start_dim": 2, "end_dim": 0},
        "'end_dim': got 0; expected no dimension before",
    ),
    (
        "Tensor.unflatten",
        {"input": X},
        {"dim": 1, "sizes": (2, 2)},
        "'sizes': got (2, 2); expected a shape of 3",
    ),
    ("Tensor.unflatten", {"input": spec()}, {"dim": 0, "sizes": (1,)}, "'sizes': got (1,)"),
    (
        "Tensor.reshape",
        {"input": X},
        {"shape": (5, -1)},
        "'shape': got (5, -1); expected a shape of 24 elements",
    ),
    ("Tensor.reshape", {"input": X}, {"shape": (-1, -1)}, "at most one -1"),
    ("Tensor.reshape", {"input": spec(0)}, {"shape": (0, -1)}, "expected a shape of 0 elements"),
    ("Tensor.reshape_as", {"input": X, "other": spec(5)}, {}, "operand '1' (other, (5)f32): got (5,)"),
    (
        "Tensor.permute",
        {"input": X},
        {"dims": (0, 1)},
        "'dims': got (0, 1); expected every one of 3 dimensions",
    ),
    ("torch.transpose", {"input": X}, {"dim0": 0, "dim1": -4}, "'dim1': got -4"),
    ("torch.t", {"input": X}, {}, "operand '0' (input, (2,3,4)f32): got 3 dimensions; expected at most 2"),
    ("torch.squeeze", {"input": X}, {"dim": (0, 0)}, "'dim': got (0, 0); expected every dimension once"),
    ("torch.unsqueeze", {"input": X}, {"dim": 4}, "'dim': got 4; expected a dimension from -4 to 3"),
    (
        "Tensor.expand",
        {"input": X},
        {"sizes": (2, 6, 4)},
        "'sizes': got (2, 6, 4); expected sizes that (2, 3, 4)",
    ),
    ("Tensor.expand", {"input": X}, {"sizes": (2, 3)}, "expected sizes for all dimensions"),
    ("Tensor.expand", {"input": spec(1)}, {"sizes": (-1, 3)}, "expected sizes for all dimensions"),
    ("Tensor.expand", {"input": spec(1)}, {"sizes": (2**40,)}, "elements in 64 dimensions"),
    ("Tensor.expand_as", {"input": X, "other": M}, {}, "operand '1' (other"),
    ("Tensor.size", {"input": spec()}, {"dim": 0}, "got no dimensions"),
    ("torch.split", {"tensor": X}, {"split_size_or_sections": (1, 1), "dim": 1}, "sizes that add up to 3"),
    ("torch.split", {"tensor": X}, {"split_size_or_sections": -1}, "no negative size"),
    ("torch.split", {"tensor": X}, {"split_size_or_sections": 0}, "a size that 2 can be split into"),
    ("torch.chunk", {"input": X}, {"chunks": 0}, "'chunks': got 0; expected at least 1"),
    ("torch.tensor_split", {"input": X}, {"sections": 0}, "'sections': got 0"),
    ("torch.unbind", {"input": spec()}, {}, "got no dimensions"),
    ("Tensor.slice", {"input": X}, {"dim": 0, "step": 0}, "'step': got 0; expected at least 1"),
    (
        "Tensor.slice",
        {"input": X},
        {"dims": (0, 1), "starts": (1,)},
        "'starts': got 1 values; expected one for each",
    ),
    ("Tensor.slice", {"input": X}, {"dims": (0,), "selects": (2,)}, "got 2; expected an index from -2 to 1"),
    ("Tensor.slice", {"input": spec()}, {"dim": 0}, "got no dimensions"),
    (
        "Tensor.select",
        {"input": X},
        {"dim": 0, "index": -3},
        "'index': got -3; expected an index from -2 to 1",
    ),
    ("Tensor.slice_copy", {"self": X, "src": spec(5)}, {"dim": 0}, "operand '1' (src, (5)f32)"),
    (
        "torch.narrow",
        {"input": X},
        {"dim": 1, "start": 4, "length": 1},
        "'start': got 4; expected from -3 to 3",
    ),
    (
        "torch.narrow",
        {"input": X},
        {"dim": 1, "start": 1, "length": 3},
        "'length': got 3; expected from 0 to 2",
    ),
    ("torch.slice_scatter", {"input": X, "src": X}, {"start": 1}, "operand '1' (src"),
    ("torch.eq", {"input": X, "other": spec(5)}, {}, "shapes (2, 3, 4) and (5,) do not broadcast"),
    ("torch.bitwise_and", {"input": X, "other": X}, {}, "bitwise_and is not defined for float32"),
    ("torch.clamp", {"input": X}, {}, "got neither min nor max"),
    ("torch.where", {"condition": X, "input": X, "other": X}, {}, "operand '0' (condition"),
    ("torch.where", {"condition": M, "input": X, "other": X}, {}, "do not broadcast"),
    ("Tensor.masked_fill", {"input": X, "mask": X}, {"value": 1}, "operand '1' (mask"),
    ("Tensor.masked_fill", {"input": M, "mask": M, "value": I}, {}, "operand '2' (value"),
    ("torch.complex", {"real": X, "imag": spec(2, 3, 4, dtype="f8")}, {}, "that of real, float32"),
    ("torch.imag", {"input": X}, {}, "dtype f32; expected a tensor of complex dtype"),
    ("torch.view_as_complex", {"input": X}, {}, "expected a last dimension of 2"),
    ("torch.positive", {"input": M}, {}, "dtype bool"),
    ("Tensor.copy", {"self": M, "src": X}, {}, "operand '1' (src"),
    ("Tensor.fill", {"input": X, "value": I}, {}, "a tensor without dimensions"),
    ("torch.cross", {"input": spec(2), "other": spec(2)}, {}, "expected a dimension of size 3"),
    ("torch.cross", {"input": spec(2, 3), "other": spec(3)}, {}, "got 1 dimensions; expected 2"),
    ("torch.diag", {"input": X}, {}, "got 3 dimensions; expected 1 or 2"),
    ("torch.diag", {"input": M}, {"diagonal": 4}, "'diagonal': got 4; expected from -2 to 3"),
    ("torch.flip", {"input": X}, {"dims": (0, -3)}, "every dimension once"),
    (
        "torch.roll",
        {"input": X},
        {"shifts": (1, 2), "dims": (0,)},
        "'shifts': got (1, 2); expected 1 of them",
    ),
    ("torch.roll", {"input": X}, {"shifts": (1, 2)}, "expected 1 of them"),
    ("Tensor.repeat", {"input": X}, {"sizes": (2,)}, "'sizes': got (2,); expected at least 3 of them"),
    ("Tensor.repeat", {"input": spec(2)}, {"sizes": (-1,)}, "no negative size"),
    ("torch.tile", {"input": X}, {"dims": (2**31,)}, "'dims'"),
    ("torch.repeat_interleave", {"input": X, "repeats": spec(2, 2)}, {}, "operand '1' (repeats"),
    ("torch.repeat_interleave", {"input": X}, {"repeats": -1}, "no negative size"),
    ("torch.as_strided", {"input": X}, {"size": (2,), "stride": ()}, "'stride': got (); expected 1 of them"),
    ("torch.as_strided", {"input": X}, {"size": (2,), "stride": (-1,)}, "no negative stride"),
    (
        "torch.as_strided",
        {"input": X},
        {"size": (2,), "stride": (1,), "storage_offset": -1},
        "no negative offset",
    ),
    ("torch.sum", {"input": X}, {"dim": 3}, "'dim': got 3; expected a dimension from -3 to 2"),
    ("torch.mean", {"input": I}, {}, "got int64; expected a floating point or complex dtype"),
    ("torch.std", {"input": I}, {"dim": 0}, "dtype i64"),
    ("torch.norm", {"input": X}, {"p": "nuc"}, "'p': got 'nuc'; expected a number or 'fro'"),
    ("torch.norm", {"input": spec(0)}, {"p": float("inf")}, "got shape (0,)"),
    ("torch.cumsum", {"input": X}, {"dim": 3}, "'dim': got 3"),
    ("torch.amax", {"input": spec(0, 2)}, {"dim": 0}, "got shape (0, 2); expected something to choose from"),
    ("torch.argmin", {"input": spec(2, dtype="c8")}, {}, "dtype c64"),
    ("torch.topk", {"input": X}, {"k": 5}, "'k': got 5; expected from 0 to 4"),
    (
        "Tensor.index",
        {"input": X},
        {"expr": "[0,[0,1],[1],[2]]"},
        "got indices for 4 dimensions; expected at most 3",
    ),
    ("Tensor.index", {"input": X}, {"expr": "[[True,False,True]]"}, "got a mask of shape (3,)"),
    ("Tensor.index_put", {"input": X, "values": spec(5)}, {"indices": "[[0,1]]"}, "operand '1' (values"),
    (
        "torch.gather",
        {"input": X, "index": spec(2, 3, 4)},
        {"dim": 0},
        "got dtype float32; expected int64 or int32",
    ),
    ("torch.gather", {"input": X, "index": I}, {"dim": 0}, "got 1 dimensions; expected 3, as input has"),
    (
        "torch.gather",
        {"input": X, "index": spec(9, 9, 9, dtype="i8")},
        {"dim": 0},
        "nothing larger than input's",
    ),
    ("torch.index_select", {"input": X, "index": spec(2, 2, dtype="i8")}, {"dim": 0}, "expected at most 1"),
    ("torch.masked_select", {"input": X, "mask": spec(5, dtype="?")}, {}, "do not broadcast"),
    ("torch.scatter_add", {"input": X, "index": I, "src": I}, {"dim": 0}, "operand '2' (src"),
    ("torch.zeros", {}, {"size": (2, -1)}, "'size': got (2, -1); expected no negative size"),
    ("torch.full", {}, {"size": (2**20, 2**20), "fill_value": 1}, "elements in 64 dimensions"),
    ("torch.full_like", {"input": X, "fill_value": I}, {}, "a tensor without dimensions"),
    ("torch.arange", {}, {"end": 5, "step": 0}, "a step that is not 0"),
    (
        "torch.arange",
        {},
        {"start": 5, "end": 0},
        "'step': got 1 from 5 to 0; expected a step towards the end",
    ),
    ("torch.arange", {}, {"end": 2**62}, "'end': makes"),
    ("torch.arange", {}, {"end": float("inf")}, "finite numbers"),
    ("torch.randn", {}, {"size": (2,), "dtype": "torch.int"}, "'dtype': got int32"),
    ("torch.randn", {}, {"size": (2,), "seed": -1}, "'seed': got -1; expected no negative number"),
    ("torch.normal", {"input": X}, {"mean": 0.0, "std": -1.0}, "'std': got -1.0"),
    ("torch.fft.fft", {"input": X}, {"n": 0}, "'n': got 0; expected at least 1"),
    (
        "torch.fft.fft",
        {"input": X},
        {"norm": "half"},
        "'norm': got 'half'; expected one of backward, forward, ortho",
    ),
    ("torch.fft.fft", {"input": spec(0)}, {}, "transformed over (0,) points"),
    ("torch.fft.irfft", {"input": spec(1)}, {}, "transformed over (0,) points"),
    ("torch.fft.rfft", {"input": spec(2, dtype="c8")}, {}, "expected a real tensor"),
    ("torch.fft.fft", {"input": spec(2, dtype="f2")}, {}, "got dtype float16"),
    ("torch.fft.fftn", {"input": X}, {"s": (2, 2), "dim": (0,)}, "'s': got (2, 2); expected 1 sizes"),
    ("torch.fft.fftn", {"input": spec(2)}, {"s": (2, 2)}, "'s': got (2, 2); expected at most 1 sizes"),
    ("torch.fft.fft2", {"input": X}, {"dim": (0, -3)}, "every dimension once"),
    ("torch.fft.rfftn", {"input": spec()}, {}, "expected at least one dimension"),
    ("torch.stft", {"input": X}, {"n_fft": 4}, "got 3 dimensions; expected 1 or 2"),
    ("torch.stft", {"input": M}, {"n_fft": 4}, "dtype bool"),
    ("torch.stft", {"input": spec(9)}, {"n_fft": 0}, "'n_fft': got 0"),
    ("torch.stft", {"input": spec(9)}, {"n_fft": 4, "hop_length": 0}, "'hop_length': got 0"),
    (
        "torch.stft",
        {"input": spec(9)},
        {"n_fft": 4, "win_length": 5},
        "'win_length': got 5; expected from 1 to n_fft",
    ),
    ("torch.stft", {"input": spec(9), "window": spec(3)}, {"n_fft": 4}, "operand '1' (window"),
    ("torch.stft", {"input": spec(9)}, {"n_fft": 4, "pad_mode": "mirror"}, "'pad_mode': got 'mirror'"),
    ("torch.stft", {"input": spec(2)}, {"n_fft": 4}, "enough to pad with 2 by reflect"),
    ("torch.stft", {"input": spec(2)}, {"n_fft": 4, "center": False}, "enough for a frame of 4"),
    (
        "torch.stft",
        {"input": spec(9, dtype="c8")},
        {"n_fft": 4, "onesided": True},
        "False for a complex input",
    ),
    ("torch.istft", {"input": spec(9, dtype="c8")}, {"n_fft": 4}, "got 1 dimensions; expected 2 or 3"),
    ("torch.istft", {"input": spec(4, 9, dtype="c8")}, {"n_fft": 9}, "expected 5 or 9 frequencies"),
    ("torch.istft", {"input": spec(3, 9)}, {"n_fft": 4}, "expected a tensor of complex dtype"),
    ("torch.istft", {"input": spec(3, 9, dtype="c8")}, {"n_fft": 4, "hop_length": 5}, "at most win_length 4"),
    ("torch.istft", {"input": spec(3, 9, dtype="c8")}, {"n_fft": 4, "length": -1}, "'length': got -1"),
    (
        "torch.istft",
        {"input": spec(3, 9, dtype="c8")},
        {"n_fft": 4, "return_complex": True},
        "for a onesided spectrum",
    ),
]


def test_refuses() -> None:
    def check(case: Refusal) -> None:
        kind, operands, params, words = case
        with pytest.raises(LayerError) as caught:
            infer(kind, params=params, **operands)
        assert str(caught.value).startswith(f"{kind} op")
        assert words in str(caught.value)

    check_each(REFUSED, check)


@pytest.mark.parametrize("kind", ["torch.cat", "torch.stack"])
def test_joining_refuses_what_does_not_fit(kind: str) -> None:
    with pytest.raises(LayerError, match=r"operand '1' \(inputs.1, \(2,4\)f32\): got shape \(2, 4\)"):
        infer(kind, a=spec(3, 3), b=spec(2, 4))
    with pytest.raises(LayerError, match="got none; expected at least one tensor"):
        infer(kind)
    with pytest.raises(LayerError, match="got 3; expected a tensor"):
        infer(kind, a=spec(2), b=3)


def test_cat_refuses_tensors_without_dimensions() -> None:
    with pytest.raises(LayerError, match="got no dimensions"):
        infer("torch.cat", a=spec())


@pytest.mark.parametrize(
    ("kind", "operands"),
    [
        ("torch.masked_select", {"input": M, "mask": M}),
        ("Tensor.index", {"input": X, "expr": (None, spec(3, dtype="?"))}),
        ("torch.repeat_interleave", {"input": spec(2), "repeats": I}),
    ],
)
def test_shape_that_depends_on_data_is_unknown(kind: str, operands: dict[str, Any]) -> None:
    assert infer(kind, **operands) is UNKNOWN


def test_length_given_in_advance_is_known() -> None:
    reported = {"dim": 0, "output_size": 5}
    assert infer("torch.repeat_interleave", params=reported, input=X, repeats=I) == spec(5, 3, 4)
