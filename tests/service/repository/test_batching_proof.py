"""Graphs that keep rows apart, and those that only seem to."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from engine import PNNX_COMPUTE, Array, InputError, LayerError, Port, Precision, RuntimeGraph
from engine.compiler.selection import Selector, linear
from service.config.limits import Limits
from service.config.model_config import ModelConfig
from service.repository.batching import UNBATCHED, Batching, plan_batching
from service.repository.batching_proof import _scattered, find_obstacle
from tests.cases import check_each
from tests.engine.models import make_graph
from tests.service.models import PAIR, VECTOR

LIMITS = Limits()
Forward = Callable[..., "Array | list[Array]"]


class FunctionGraph:
    """A graph that computes a function of its inputs, and remembers how many rows it was given."""

    outputs = (Port("out", "y", None, None),)
    precision = Precision.F32

    def __init__(self, function: Forward, *types: tuple[tuple[int | None, ...] | None, str]) -> None:
        self.inputs = tuple(
            Port("in", f"x{index}", shape, dtype) for index, (shape, dtype) in enumerate(types)
        )
        self._function = function
        self.rows: list[int] = []

    def forward(self, inputs: list[Array]) -> list[Array]:
        for port, array in zip(self.inputs, inputs, strict=True):
            assert array.dtype == PNNX_COMPUTE[port.dtype or "f32"]
        self.rows.append(len(inputs[0]))
        given = self._function(*inputs)
        return given if isinstance(given, list) else [given]


def obstacle(
    function: Forward, *types: tuple[tuple[int | None, ...] | None, str], max_rows: int = 4
) -> str | None:
    graph = FunctionGraph(function, *(types or (((1, 6), "f32"),)))
    return find_obstacle(cast("RuntimeGraph", graph), max_rows, LIMITS)


def baked(array: Array) -> Array:
    if len(array) != 1:
        raise LayerError("Tensor.reshape: shape (1, 6) does not fit")
    return array.reshape(1, 6)


def pair_only(array: Array) -> Array:
    if len(array) != 2:
        raise LayerError("Tensor.reshape: shape (2, 6) does not fit")
    return array


def small_batches(array: Array) -> Array:
    if len(array) > 3:
        raise LayerError("takes too much memory")
    return array


def noisy(amount: float) -> Forward:
    return lambda array: array * np.float32(1 + amount * (len(array) - 1))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.maximum(x, 0),
        lambda x: x.reshape(len(x), 2, 3).transpose(0, 2, 1),
        lambda x: x - x.max(axis=1, keepdims=True),
        lambda x: [x.argmax(axis=1), x[:, :1]],
        np.log,
        lambda x: x / 0,
        lambda x: x * np.float32(1e37) * np.float32(1e37),
        noisy(1e-7),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rows_that_are_kept_apart(function: Forward) -> None:
    assert obstacle(function) is None


def test_rows_that_are_not() -> None:
    cases: dict[str, tuple[Forward, str]] = {
        "largest of all": (lambda x: x - x.max(), "depends on what else"),
        "batch normalization": (
            lambda x: (x - x.mean(axis=0)) / (x.std(axis=0) + 1),
            "depends on what else",
        ),
        "reversed": (lambda x: x[::-1], "depends on what else"),
        "cumulative sum": (lambda x: np.cumsum(x, axis=0), "depends on what else"),
        "a little of the previous row": (
            lambda x: x + 1e-3 * np.roll(x, 1, axis=0),
            "depends on what else",
        ),
        "sign of the sum": (lambda x: x * (x.sum() > 0), "depends on what else"),
        "transposed": (lambda x: x.T.reshape(x.shape), "depends on what else"),
        "argmax over rows": (lambda x: x.argmax(axis=0), "without the rows in front"),
        "sum of rows": (lambda x: x.sum(axis=0, keepdims=True), "without the rows in front"),
        "three rows": (lambda x: x.reshape(3, -1), "without the rows in front"),
        "sum of all": (lambda x: x.sum(), "without the rows in front"),
        "more rows": (lambda x: x.reshape(-1, 2), "without the rows in front"),
        "second output without rows": (lambda x: [x, np.zeros(2)], "without the rows in front"),
        "an output per row": (lambda x: [x] * len(x), "another shape"),
        "as many columns as rows": (lambda x: np.repeat(x, len(x), axis=1), "another shape"),
        "above the mean": (lambda x: (x > x.mean()).astype(np.int64), "depends on what else"),
        "row 3 and the first": (
            lambda x: np.concatenate([x[:3], x[3:] + x[:1]]),
            "row 3 depends on what else",
        ),
        "noise": (noisy(1e-4), "depends on what else"),
        "one row only": (baked, "does not run on 2 rows"),
        "two rows only": (pair_only, "does not run on one row"),
        "at most three rows": (small_batches, "does not run on 4 rows"),
    }

    def check(name: str) -> None:
        function, reason = cases[name]
        assert reason in str(obstacle(function))

    check_each(cases, check)


def test_every_row_may_have_another_response_each_time() -> None:
    generator = np.random.default_rng(0)
    assert "depends" in str(obstacle(lambda x: x * generator.standard_normal(x.shape)))


def test_layer_that_works_in_place_proves_nothing_by_it() -> None:
    def double(array: Array) -> Array:
        array *= 2
        return array

    assert obstacle(double) is None


@pytest.mark.parametrize("dtype", ["f32", "i64", "u8", "bool"])
@pytest.mark.parametrize("extreme", [np.max, np.min])
def test_the_least_and_the_largest_of_all_rows_are_noticed(dtype: str, extreme: Callable[..., Array]) -> None:
    def with_extreme(x: Array, axis: int | None) -> Array:
        return np.broadcast_to(extreme(x, axis=axis, keepdims=True), (len(x), 8)) + 0.0 * x

    assert obstacle(lambda x: with_extreme(x, 1), ((1, 8), dtype)) is None
    assert obstacle(lambda x: with_extreme(x, None), ((1, 8), dtype)) is not None


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "i64", "i32", "u8", "bool", "c64"])
def test_every_dtype_is_tried_with_rows_that_differ(dtype: str) -> None:
    assert obstacle(lambda x: x, ((1, 1), dtype)) is None
    assert obstacle(lambda x: x[:1].repeat(len(x), axis=0), ((1, 1), dtype)) is not None


def test_whole_numbers_are_sound_as_indices() -> None:
    table = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert obstacle(lambda x: table[x], ((1, 7), "i64")) is None


def test_all_inputs_have_the_batch_axis() -> None:
    assert obstacle(lambda x, y: x + y, ((1, 2), "f32"), ((1, 2), "f32")) is None
    assert "scalar" in str(obstacle(lambda x, y: x + y, ((1, 2), "f32"), ((), "f32")))
    assert "declares no shape" in str(obstacle(lambda x: x, (None, "f32")))


def test_dynamic_dimensions_are_tried_at_several_extents() -> None:
    def runs_at(*extents: int) -> Forward:
        def forward(array: Array) -> Array:
            if array.shape[1] not in extents:
                raise InputError("no")
            return array[::-1] if array.shape[1] == 64 else array

        return forward

    assert obstacle(runs_at(8), ((None, None), "f32")) is None
    assert "depends" in str(obstacle(runs_at(8, 64), ((None, None), "f32")))
    assert "does not run on one row" in str(obstacle(runs_at(), ((None, None), "f32")))


def test_largest_batch_is_tried() -> None:
    graph = FunctionGraph(lambda x: x, ((1, 2), "f32"))
    assert find_obstacle(cast("RuntimeGraph", graph), 32, LIMITS) is None
    assert max(graph.rows) == 32


def test_nothing_larger_is_allocated_than_a_request_may_bring() -> None:
    graph = FunctionGraph(lambda x: x, ((1, 1 << 40), "f32"))
    assert "elements" in str(find_obstacle(cast("RuntimeGraph", graph), 4, LIMITS))
    assert graph.rows == []


ROWS = """
pnnx.Input  in  0 1 0 #0=(1,3)f32
{line}
pnnx.Output out 1 0 1
"""


@pytest.mark.parametrize(
    ("lines", "is_sound"),
    [
        (VECTOR, True),
        (PAIR, True),
        (ROWS.format(line="nn.Softmax soft 1 1 0 1 dim=1"), True),
        (ROWS.format(line="nn.Softmax soft 1 1 0 1 dim=0"), False),
        (ROWS.format(line="Tensor.reshape shape 1 1 0 1 shape=(1,3)"), False),
        (ROWS.format(line="Tensor.reshape shape 1 1 0 1 shape=(-1,3)"), True),
        (ROWS.format(line="torch.flip flip 1 1 0 1 dims=(0)"), False),
        (ROWS.format(line="torch.cumsum sum 1 1 0 1 dim=0"), False),
    ],
)
def test_graphs_of_the_engine(tmp_path: Path, lines: str, is_sound: bool) -> None:
    graph = make_graph(tmp_path, lines)
    assert (find_obstacle(graph, 4, LIMITS) is None) == is_sound


ROUNDED = """
pnnx.Input in 0 1 x #x=(?,64)f32
nn.Linear fc 1 1 x y bias=False in_features=64 out_features=32 @weight=(32,64)f32
{line}
pnnx.Output out 1 0 z
"""


@pytest.mark.parametrize(("dim", "is_sound"), [(1, True), (0, False)])
def test_rows_are_independent_of_what_rounding_makes_of_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dim: int, is_sound: bool
) -> None:
    """One row stays in float32 here, and more are rounded to bfloat16: no row depends on others for all that."""
    monkeypatch.setattr(linear, "_of_one_item", lambda node, shape: shape)
    monkeypatch.setattr(Selector, "rounds", lambda _, efforts: efforts["f32"].multiply_adds > 32 * 64)
    random = np.random.default_rng(0)
    weights = {"fc.weight": random.standard_normal((32, 64)).astype(np.float32)}
    text = ROUNDED.format(line=f"nn.Softmax soft 1 1 y z dim={dim}").strip()
    graph = make_graph(tmp_path, text, weights, backend="native", precision="bf16")
    x = random.standard_normal((2, 64)).astype(np.float32)
    together, alone = graph.forward([x])[0], np.concatenate([graph.forward([row[None]])[0] for row in x])
    assert np.abs(together - alone).max() > 1e-4
    assert (find_obstacle(graph, 4, LIMITS) is None) == is_sound


def test_the_run_in_float32_takes_no_more_memory_than_the_graph_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []
    forward = RuntimeGraph.forward

    def counted(graph: RuntimeGraph, inputs: list[Array]) -> list[Array]:
        outputs = forward(graph, inputs)
        ran.append(len(outputs[0]))
        return outputs

    monkeypatch.setattr(RuntimeGraph, "forward", counted)
    weights = {"fc.weight": np.ones((32, 64), np.float32)}
    text = ROUNDED.format(line="nn.ReLU relu 1 1 y z").strip()
    row_bytes = 4 * (64 + 32)
    graph = make_graph(tmp_path, text, weights, precision="bf16", max_run_bytes=3 * row_bytes)
    assert "does not run on 4 rows" in (find_obstacle(graph, 4, LIMITS) or "")
    assert set(ran) == {1, 2}


def test_configuration_decides_whether_anything_is_proved(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, VECTOR)
    asked = ModelConfig.model_validate({"batching": {"max_batch_size": 8}})
    declined = ModelConfig.model_validate({"batching": {"max_batch_size": 1}})
    assert plan_batching(graph, ModelConfig(), 1, LIMITS) is UNBATCHED
    assert plan_batching(graph, declined, 4, LIMITS) is UNBATCHED
    assert plan_batching(graph, ModelConfig(), 4, LIMITS) == Batching(4)
    assert plan_batching(graph, asked, 1, LIMITS) == Batching(8)
    assert asked.batching.max_batch_size == 8


def test_refusal_leaves_the_model_unbatched(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, ROWS.format(line="nn.Softmax soft 1 1 0 1 dim=0"))
    batching = plan_batching(graph, ModelConfig(), 4, LIMITS)
    assert batching.max_batch_size == 1
    assert "depends on what else" in str(batching.refusal)


def test_shapes_that_requests_are_to_have_are_tried_first() -> None:
    def only_seven(x: Array) -> Array:
        if x.shape[1] != 7:
            raise LayerError("nn.Linear fc: takes 7")
        return np.maximum(x, 0)

    graph = FunctionGraph(only_seven, ((None, None), "f32"))
    assert find_obstacle(cast("RuntimeGraph", graph), 4, LIMITS) is not None
    assert find_obstacle(cast("RuntimeGraph", graph), 4, LIMITS, [((7,),)]) is None


def test_shapes_of_requests_show_what_others_do_not() -> None:
    def mixes_seven(x: Array) -> Array:
        return x - x.mean(axis=0) if x.shape[1] == 7 else x

    graph = FunctionGraph(mixes_seven, ((None, None), "f32"))
    assert find_obstacle(cast("RuntimeGraph", graph), 4, LIMITS) is None
    assert "depends on what else" in str(find_obstacle(cast("RuntimeGraph", graph), 4, LIMITS, [((7,),)]))


def test_rows_look_random_and_are_those_of_splitmix64() -> None:
    numbers = _scattered((300, 300))
    assert abs(numbers.mean()) < 0.02
    assert abs(numbers.std() - 2 / np.sqrt(3)) < 0.02
    assert abs(np.corrcoef(numbers)[np.triu_indices(300, 1)]).max() < 0.4
    # the reference's first values for a seed of 0
    first = np.array([0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F], np.uint64)
    assert np.array_equal(_scattered((3,)), (first >> np.uint64(11)).astype(np.float64) * 2.0**-51 - 2)
    assert not np.intersect1d(_scattered((50,), 1), _scattered((50,))).size
