"""Layers over tensors where the exporter gives no golden case: forms it drops, views, data that does not fit."""

from typing import Any

import numpy as np
import pytest

from engine import LayerError
from engine.dtypes import Array
from engine.spec import TensorSpec
from tests.engine.layers.bound import bind, counting, infer, longs, run, singles, spec

NAN = float("nan")


def test_views_do_not_copy() -> None:
    x = counting(2, 3, 4)
    cases: dict[str, dict[str, Any]] = {
        "torch.flatten": {},
        "Tensor.reshape": {"shape": (4, 6)},
        "Tensor.permute": {"dims": (2, 0, 1)},
        "torch.transpose": {"dim0": 0, "dim1": 1},
        "torch.unsqueeze": {"dim": 1},
        "Tensor.slice": {"dim": 1, "start": 1},
        "Tensor.select": {"dim": 0, "index": 1},
        "Tensor.expand": {"sizes": (5, 2, 3, 4)},
        "torch.narrow": {"dim": 0, "start": 1, "length": 1},
        "torch.flip": {"dims": (0,)},
        "Tensor.clone": {},
    }
    for kind, params in cases.items():
        assert np.shares_memory(run(kind, params=params, input=x), x), kind


def test_permute_as_a_function() -> None:
    assert run("torch.permute", params={"dims": (1, 0)}, input=counting(2, 3)).shape == (3, 2)


def test_size_of_one_dimension_is_an_int() -> None:
    assert run("Tensor.size", params={"dim": -1}, input=counting(2, 3)) == 3
    assert infer("Tensor.size", params={"dim": -1}, input=spec(2, 3)) == 3
    assert run("Tensor.size", input=counting(2, 3)) == (2, 3)


def test_copy_takes_shape_and_dtype_of_what_it_overwrites() -> None:
    result = run("Tensor.copy", self=counting(2, 3, dtype="i8"), src=singles([1.9, -1.9, 3]))
    np.testing.assert_array_equal(result, longs([[1, -1, 3]] * 2))


def test_cat_takes_a_list_and_leaves_out_empty_vectors() -> None:
    parts = (counting(2, 3), np.zeros(0, np.float32), counting(1, 3))
    result = bind("torch.cat", "tensors").forward([parts])[0]
    assert isinstance(result, np.ndarray)
    assert result.shape == (3, 3)


def test_slice_to_int_max_goes_to_the_end() -> None:
    params = {
        "dims": (0, 1),
        "starts": (1, 0),
        "ends": (2**31 - 1, 0),
        "selects": (2**31 - 1, -1),
        "steps": (2, 0),
    }
    np.testing.assert_array_equal(run("Tensor.slice", params=params, input=counting(4, 3)), [5, 11])


def test_slice_indexes_gather_numbers_and_operands() -> None:
    layer = bind("pnnx.SliceIndexes", "a", "b", indexes=("3", "@1", "-2", "@0"))
    assert layer.forward([7, longs(9)]) == ((3, 9, -2, 7),)
    assert layer.infer([7, 9]) == ((3, 9, -2, 7),)


@pytest.mark.parametrize("index", ["@2", "@", "@-1", "x", "-", "²"])
def test_slice_indexes_refuse_what_is_no_index(index: str) -> None:
    with pytest.raises(LayerError, match="a number, or @ and the place of an operand"):
        bind("pnnx.SliceIndexes", "a", indexes=("1", index)).forward([1])


def test_bounds_of_a_slice_may_come_in_a_run() -> None:
    layer = bind("Tensor.slice", "input", "ends", dims=(0,), starts=(1,), steps=(1,))
    np.testing.assert_array_equal(layer.forward([counting(5), (3,)])[0], [1, 2])
    assert layer.infer([spec(5), (3,)]) == (spec(2),)


def test_as_strided_counts_from_the_start_of_the_storage() -> None:
    x = counting(3, 4)
    params = {"size": (2, 2), "stride": (3, 1), "storage_offset": 4}
    np.testing.assert_array_equal(run("torch.as_strided", params=params, input=x[1:]), [[4, 5], [7, 8]])


def test_as_strided_stays_in_the_storage() -> None:
    x = counting(3, 4)
    with pytest.raises(LayerError, match="reaches element 12; expected at most 11"):
        run("torch.as_strided", params={"size": (2,), "stride": (12,)}, input=x)
    assert run("torch.as_strided", params={"size": (0, 9), "stride": (99, 99)}, input=x).shape == (0, 9)


def test_nan_is_the_largest_and_the_smallest() -> None:
    x = singles([1, NAN, 3])
    assert np.isnan(run("torch.amax", input=x))
    assert np.isnan(run("torch.amin", input=x))
    assert run("torch.argmax", input=x) == 1
    values, places = run("torch.topk", outputs=2, params={"k": 2}, input=x)
    np.testing.assert_array_equal(values, [NAN, 3])
    np.testing.assert_array_equal(places, [1, 2])


def test_equal_values_keep_their_order() -> None:
    x = counting(6) // 2
    assert run("torch.topk", outputs=2, params={"k": 3}, input=x)[1].tolist() == [4, 5, 2]
    lowest = run("torch.topk", outputs=2, params={"k": 3, "largest": False}, input=x)
    assert lowest[1].tolist() == [0, 1, 2]


def test_tensors_without_dimensions_stay_arrays() -> None:
    x = singles(3)
    for kind in ("sum", "mean", "prod", "amax", "argmax", "norm", "lgamma", "logical_not", "fft.fftn"):
        assert isinstance(run(f"torch.{kind}", input=x), np.ndarray), kind
    for output in run("torch.max", outputs=2, params={"dim": 0}, input=x):
        assert isinstance(output, np.ndarray)
        assert output.shape == ()


def test_variance_that_uses_up_its_values_is_nan() -> None:
    assert np.isnan(run("torch.var", input=singles([1])))
    assert np.isnan(run("torch.mean", input=np.zeros(0, np.float32)))


def test_sum_and_mean_take_a_dtype() -> None:
    x = counting(3, dtype="i4")
    assert run("torch.mean", params={"dtype": "torch.double"}, input=x).dtype == np.float64
    assert run("torch.sum", params={"dtype": "torch.float"}, input=x).dtype == np.float32
    assert run("torch.cumsum", params={"dtype": "torch.short", "dim": 0}, input=x).dtype == np.int16


@pytest.mark.parametrize("value", [-1, 3])
@pytest.mark.parametrize("kind", ["torch.gather", "torch.index_select"])
def test_index_out_of_range_is_refused(kind: str, value: int) -> None:
    with pytest.raises(LayerError, match=r"operand '1' \(index.*indices from 0 to 2"):
        run(kind, params={"dim": 0}, input=counting(3), index=longs([value]))


def test_scatter_index_out_of_range_is_refused() -> None:
    with pytest.raises(LayerError, match="indices from 0 to 2"):
        run("torch.scatter_add", params={"dim": 0}, input=counting(3), index=longs([3]), src=counting(1))


def test_index_out_of_range_names_the_operator() -> None:
    with pytest.raises(LayerError, match=r"Tensor\.index op.*out of bounds"):
        run("Tensor.index", params={"expr": "[[0,5]]"}, input=counting(3))


def test_bytes_are_masks() -> None:
    mask = np.array([1, 0, 2], np.uint8)
    np.testing.assert_array_equal(run("Tensor.index", input=counting(3), expr=(mask,)), [0, 2])


def test_index_put_of_none_writes_false() -> None:
    mask = np.array([True, False])
    result = run("Tensor.index_put", params={"values": None}, input=np.array([True, True]), indices=(mask,))
    assert result.tolist() == [False, True]


def test_negative_repeats_are_refused() -> None:
    with pytest.raises(LayerError, match="got a negative number"):
        run("torch.repeat_interleave", input=counting(2), repeats=longs([1, -1]))
    params = {"output_size": 4, "dim": 0}
    with pytest.raises(LayerError, match="the sum of repeats, 3"):
        run("torch.repeat_interleave", params=params, input=counting(2), repeats=longs([1, 2]))


def test_new_full_takes_the_dtype_of_its_input() -> None:
    result = run("Tensor.new_full", params={"size": (2,), "fill_value": 1.9}, input=counting(3, dtype="i8"))
    np.testing.assert_array_equal(result, longs([1, 1]))


def test_full_takes_the_dtype_of_its_value() -> None:
    for value, dtype in ((True, "?"), (1, "i8"), (1.5, "f4"), (1j, "c8")):
        assert run("torch.full", params={"size": (2,), "fill_value": value}).dtype == np.dtype(dtype)


def test_empty_is_zero() -> None:
    assert run("torch.empty", params={"size": (2, 3)}).tolist() == [[0] * 3] * 2


def test_arange_over_tensors_is_known_in_the_run() -> None:
    layer = bind("torch.arange", "end")
    assert not isinstance(layer.infer([spec(dtype="i8")])[0], TensorSpec)
    np.testing.assert_array_equal(layer.forward([np.asarray(3)])[0], longs([0, 1, 2]))


@pytest.mark.parametrize(("kind", "params"), [("torch.randn", {"size": (200, 200)}), ("torch.normal", {})])
def test_normal_numbers_have_their_moments(kind: str, params: dict[str, Any]) -> None:
    operands: dict[str, Any] = {} if kind == "torch.randn" else {"input": np.zeros((200, 200), np.float32)}
    drawn = run(kind, params=params | {"seed": 1}, **operands)
    assert (drawn.shape, drawn.dtype) == ((200, 200), np.float32)
    assert abs(drawn.mean()) < 0.02
    assert abs(drawn.std() - 1) < 0.02
    assert abs(np.mean(drawn**3)) < 0.05
    assert abs(np.mean(drawn**4) - 3) < 0.15


def test_normal_takes_mean_and_deviation() -> None:
    params = {"mean": 5.0, "std": 0.5, "seed": 3}
    drawn = run("torch.normal", params=params, input=np.zeros(40_000, np.float64))
    assert abs(drawn.mean() - 5) < 0.02
    assert abs(drawn.std() - 0.5) < 0.02


def test_seed_repeats_the_numbers() -> None:
    def draw(seed: int | None) -> Array:
        return np.asarray(run("torch.randn", params={"size": (9,), "seed": seed}))

    np.testing.assert_array_equal(draw(7), draw(7))
    assert np.any(draw(7) != draw(8))
    assert np.any(draw(None) != draw(None))


def test_complex_numbers_have_a_variance_of_one() -> None:
    drawn = run("torch.randn", params={"size": (40_000,), "dtype": "torch.complex64", "seed": 2})
    assert drawn.dtype == np.complex64
    assert abs(np.mean(np.abs(drawn) ** 2) - 1) < 0.03


def test_transform_of_nothing_is_zero() -> None:
    result = run("torch.fft.irfft2", params={"s": (2, 3)}, input=np.zeros((2, 0), np.float32))
    np.testing.assert_array_equal(result, np.zeros((2, 3)))


def test_windows_that_do_not_overlap_are_refused() -> None:
    spectrum = np.ones((5, 3), np.complex64)
    hann = singles(np.hanning(9)[:8])
    with pytest.raises(LayerError, match="adds up to zero somewhere"):
        run("torch.istft", params={"n_fft": 8, "center": False}, input=spectrum, window=hann)


def test_frames_aligned_to_the_window_begin_with_the_signal() -> None:
    signal, window = counting(20), np.ones(4, np.float32)
    params = {"n_fft": 8, "hop_length": 2, "win_length": 4, "center": False, "return_complex": True}
    aligned = run("torch.stft", params=params | {"align_to_window": True}, input=signal, window=window)
    assert aligned.shape == (5, 9)
    np.testing.assert_allclose(aligned[0], [signal[i : i + 4].sum() for i in range(0, 17, 2)], rtol=1e-6)


def test_inverse_spectrogram_cuts_its_padding_off() -> None:
    spectrum = np.ones((9, 7), np.complex64)
    params = {"n_fft": 16, "hop_length": 4, "win_length": 16}
    kind = "torchaudio.functional.inverse_spectrogram"
    window = np.ones(16, np.float32)
    whole = run(kind, params=params, spectrogram=spectrum, window=window)
    cut = run(kind, params=params | {"length": 12, "pad": 3}, spectrogram=spectrum, window=window)
    np.testing.assert_allclose(cut, whole[3:15], rtol=1e-6)


@pytest.mark.parametrize(
    ("params", "words"), [({"pad": -1}, "'pad'"), ({"normalized": "energy"}, "'normalized'")]
)
def test_spectrogram_refuses(params: dict[str, Any], words: str) -> None:
    sizes = {"n_fft": 8, "hop_length": 2, "win_length": 8}
    with pytest.raises(LayerError, match=words):
        infer(
            "torchaudio.functional.spectrogram", params=sizes | params, waveform=spec(2, 30), window=spec(8)
        )
    kind = "torchaudio.functional.inverse_spectrogram"
    with pytest.raises(LayerError, match=words):
        infer(kind, params=sizes | params, spectrogram=spec(5, 9, dtype="c8"), window=spec(8))


def test_true_scales_a_spectrogram_by_its_window() -> None:
    sizes = {"n_fft": 8, "hop_length": 2, "win_length": 8, "power": None}
    kind = "torchaudio.functional.spectrogram"
    operands: dict[str, Any] = {"waveform": counting(1, 20), "window": np.full(8, 2, np.float32)}
    scaled = run(kind, params=sizes | {"normalized": True}, **operands)
    np.testing.assert_allclose(scaled * np.sqrt(32), run(kind, params=sizes, **operands), rtol=1e-5)
