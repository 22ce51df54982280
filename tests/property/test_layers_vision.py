"""No operand and no parameter makes a spatial layer fail with anything but the engine's errors."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.trial import arrays, attempt, few, ints, mostly, shapes

MAPS = shapes(3, 4, 6)


WINDOWS = {"kernel_size": ints(), "dilation": ints(1, 2), "padding": ints(0, 2), "stride": ints()}


@given(st.sampled_from(("F.unfold", "nn.Unfold")), arrays(mostly(MAPS, shapes())), few(**WINDOWS))
def test_unfold(type_name: str, image: np.ndarray, params: dict[str, Any]) -> None:
    attempt(type_name, [image], {"kernel_size": 2, **params})


@given(
    st.sampled_from(("F.fold", "nn.Fold")),
    arrays(
        mostly(st.tuples(st.integers(0, 2), st.sampled_from((4, 8)), st.sampled_from((2, 6, 12))), shapes())
    ),
    few(output_size=ints(2, 5), **WINDOWS),
)
def test_fold(type_name: str, image: np.ndarray, params: dict[str, Any]) -> None:
    attempt(type_name, [image], {"output_size": (3, 4), "kernel_size": 2, **params})


@given(st.sampled_from((1, 2, 3, 5)), st.data())
def test_columns_of_a_grid_without_overlap_fold_back(step: int, data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    image = data.draw(arrays(st.just((2, 3, rows * step, columns * step)), ["f4", "f8"]))
    windows = {"kernel_size": (step, step), "stride": (step, step)}
    unfolded = attempt("F.unfold", [image], windows)
    folded = attempt("F.fold", [unfolded], {"output_size": image.shape[2:], **windows})
    np.testing.assert_array_equal(folded, image)


@given(
    st.sampled_from(("F.pixel_shuffle", "nn.PixelUnshuffle", "nn.ChannelShuffle")),
    arrays(mostly(st.tuples(*[st.sampled_from((0, 4, 6, 9, 18))] * 3), shapes())),
    mostly(st.integers(1, 3), st.integers(-1, 4) | st.just(2**40)),
)
def test_shuffles(type_name: str, image: np.ndarray, number: int) -> None:
    names = {"F": "upscale_factor", "nn.PixelUnshuffle": "downscale_factor", "nn.ChannelShuffle": "groups"}
    attempt(type_name, [image], {names.get(type_name, names["F"]): number})


@given(arrays(shapes(0, 3)), st.integers(1, 3), st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))
def test_pixels_shuffled_twice_are_in_place(
    image: np.ndarray, factor: int, channels: int, rows: int, columns: int
) -> None:
    shape = (*image.shape, channels * factor**2, rows, columns)
    image = np.resize(image, shape) if image.size else np.zeros(shape)
    shuffled = attempt("nn.PixelShuffle", [image], {"upscale_factor": factor})
    back = attempt("nn.PixelUnshuffle", [shuffled], {"downscale_factor": factor})
    np.testing.assert_array_equal(back, image)


@given(
    st.sampled_from(("nn.MaxUnpool", "F.max_unpool")),
    st.integers(1, 3),
    st.data(),
    few(kernel_size=ints(2, 4, 1), stride=ints(2, 3, 1), padding=ints(0, 1, 1)),
    mostly(st.none(), ints(0, 9, 3)),
)
def test_unpool(prefix: str, rank: int, data: st.DataObject, params: dict[str, Any], size: Any) -> None:
    shape = data.draw(mostly(shapes(rank + 1, rank + 2, 3), shapes()))
    maxima = data.draw(arrays(mostly(st.just(shape), shapes())))
    indices = data.draw(arrays(st.just(shape), ["i8", "i8", "i8", "i4", "u1"]))
    if data.draw(mostly(st.just(True), st.just(False))):
        indices = np.abs(indices % 2)
    attempt(f"{prefix}{rank}d", [maxima, indices], {"kernel_size": 2, "output_size": size, **params})


@given(st.integers(2, 3), st.data())
def test_unpool_of_given_size(rank: int, data: st.DataObject) -> None:
    shape = data.draw(mostly(shapes(rank + 1, rank + 2, 3), shapes()))
    maxima, indices = data.draw(arrays(st.just(shape))), data.draw(arrays(st.just(shape), ["i8"]))
    size = data.draw(mostly(st.tuples(*[st.integers(1, 5)] * rank), ints(-1, 6)))
    attempt(f"aten::max_unpool{rank}d", [maxima, np.abs(indices % 2), size], {})


@given(
    mostly(st.integers(2, 3), st.integers(0, 4)),
    st.data(),
    few(
        mode=mostly(st.sampled_from(("bilinear", "nearest", "bicubic")), st.just("trilinear")),
        padding_mode=mostly(st.sampled_from(("zeros", "border", "reflection")), st.just("circular")),
        align_corners=st.sampled_from((True, False, None)),
    ),
)
def test_grid_sample(axes: int, data: st.DataObject, params: dict[str, Any]) -> None:
    batch = data.draw(st.integers(0, 2))
    sizes = st.tuples(*[mostly(st.integers(1, 5), st.just(0))] * axes).map(lambda shape: (batch, 2, *shape))
    points = shapes(axes, axes).map(lambda shape: (batch, *shape, axes))
    dtypes = data.draw(mostly(st.sampled_from((["f4"], ["f8"], ["f2"])), st.just(["f4", "i8"])))
    image = data.draw(arrays(mostly(sizes, shapes()), dtypes))
    grid = data.draw(arrays(mostly(points, shapes()), dtypes))
    attempt("F.grid_sample", [image, grid], params)


@given(
    mostly(
        st.lists(st.integers(1, 4), min_size=4, max_size=5), st.lists(st.integers(-1, 4) | st.just(2**33))
    ),
    st.data(),
    few(align_corners=st.sampled_from((True, False, None))),
)
def test_affine_grid(size: list[int], data: st.DataObject, params: dict[str, Any]) -> None:
    fitting = (size[0], len(size) - 2, len(size) - 1) if len(size) > 2 and 0 <= size[0] < 5 else ()
    theta = data.draw(arrays(mostly(st.just(fitting), shapes())))
    attempt("F.affine_grid", [theta], {"size": tuple(size) or None, **params})


@given(
    st.data(),
    few(stride=ints(), padding=ints(0, 2), dilation=ints(1, 2), groups=mostly(st.just(2), st.just(3))),
)
def test_deformable_convolution(data: st.DataObject, params: dict[str, Any]) -> None:
    batch, kernel = (
        data.draw(st.integers(0, 2)),
        data.draw(mostly(st.tuples(*[st.integers(1, 2)] * 2), shapes(2, 2))),
    )
    size, weight = (
        data.draw(st.tuples(*[st.integers(3, 6)] * 2)),
        np.ones((4, 4 // params.get("groups", 1), *kernel), np.float32),
    )
    image = data.draw(arrays(mostly(st.just((batch, 4, *size)), shapes()), ["f4"]))
    plain = attempt("nn.Conv2d", [image], params, {"weight": weight})
    output = (2, 3) if plain is None else plain.shape[2:]
    taps, groups = kernel[0] * kernel[1], data.draw(st.integers(1, 3))
    offset = data.draw(arrays(mostly(st.just((batch, 2 * groups * taps, *output)), shapes()), ["f4"]))
    mask = data.draw(arrays(mostly(st.just((batch, groups * taps, *output)), shapes()), ["f4"]))
    operands = [image, offset, mask] if data.draw(st.booleans()) else [image, offset]
    attempt("torchvision.ops.DeformConv2d", operands, {"bias": False, **params}, {"weight": weight})


def test_deformable_convolution_without_offsets_is_a_convolution() -> None:
    rng = np.random.default_rng(0)
    image, weight = rng.normal(size=(2, 4, 6, 5)), rng.normal(size=(6, 2, 3, 2))
    params = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2}
    wanted = attempt("nn.Conv2d", [image], params, {"weight": weight})

    offset = np.zeros((2, 12, *wanted.shape[2:]))
    given = attempt("torchvision.ops.DeformConv2d", [image, offset], params, {"weight": weight})
    np.testing.assert_allclose(given, wanted, rtol=1e-12)


@given(
    arrays(mostly(shapes(4, 4, 5), shapes()), ["f4", "f4", "f4", "f8"]),
    arrays(mostly(st.integers(0, 3).map(lambda count: (count, 5)), shapes()), ["f4"]),
    few(
        output_size=ints(),
        spatial_scale=st.sampled_from((0.25, 1.0, -1.0, float("inf"))),
        sampling_ratio=st.integers(-1, 3) | st.just(10**9),
        aligned=st.booleans(),
    ),
)
def test_roi_align(image: np.ndarray, rois: np.ndarray, params: dict[str, Any]) -> None:
    if rois.ndim == 2 and image.ndim == 4 and len(image):
        with np.errstate(invalid="ignore"):
            rois[:, 0] %= len(image)
    attempt("torchvision.ops.RoIAlign", [image, rois], {"output_size": 2, **params})


@pytest.mark.parametrize("item", [-1.0, 2.0, np.nan])
def test_roi_align_names_an_item_that_is_not_there(item: float) -> None:
    image, rois = np.zeros((2, 1, 4, 4), np.float32), np.array([[item, 0, 0, 2, 2]], np.float32)
    assert attempt("torchvision.ops.RoIAlign", [image, rois], {"output_size": 2}) is None
