"""The recurrent kernel, and layers made of it, against numpy."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.contraction.tile import Tile
from engine.compiler.emit.target import Target
from engine.compiler.kernels.cells import GATES, interleaved
from engine.compiler.kernels.recurrent import Recurrence, RecurrentShape
from engine.dtypes import Array
from engine.kernels import recurrent as reference
from tests.cases import check_each
from tests.engine.compiler.harness import every_target, examples_of_kernels, run
from tests.engine.compiler.plans import kinds_of, lowered
from tests.engine.models import make_graph

CELLS = {
    "tanh": reference.tanh_cell,
    "relu": reference.relu_cell,
    "gru": reference.gru_cell,
    "lstm": reference.lstm_cell,
}


def numbers(seed: int, *shape: int) -> Array:
    """Return normal numbers, of which long sums stay small."""
    return (np.random.default_rng(seed).standard_normal(shape) * 0.5).astype(np.float32)


def wanted(
    kernel: Recurrence, products: list[Array], weights: list[Array], biases: list[Array], states: list[Array]
) -> list[Array]:
    """Return output and final states as the numpy kernel computes them; `products` are (length, batch, rows)."""
    gates, hidden = GATES[kernel.shape.cell], kernel.shape.hidden
    # the numpy kernel makes the products itself: of one-hot features it makes any
    outputs, finals = [], []
    for direction in range(kernel.shape.directions):
        bias = np.zeros(gates * hidden, np.float32)
        if kernel.shape.cell == "gru":
            bias[2 * hidden :] = biases[direction]
        own = reference.Weights(
            np.eye(gates * hidden, dtype=np.float32), weights[direction], None, bias, None
        )
        state = tuple(kind[direction] for kind in states)
        sequence = products[direction][::-1] if direction else products[direction]
        rows = []
        for step in sequence:
            state = CELLS[kernel.shape.cell](step, state, own)
            rows.append(state[0])
        outputs.append(np.stack(rows[::-1] if direction else rows))
        finals.append(state)
    return [np.stack(outputs, axis=2), *(np.stack(kind) for kind in zip(*finals, strict=True))]


def check(kernel: Recurrence, target: Target, seed: int = 0) -> None:
    """Run a kernel on random numbers and compare all that it gives."""
    shape, gates = kernel.shape, kernel.shape.gates
    steps, batch, hidden = shape.steps, shape.batch, shape.hidden
    kinds = 2 if kernel.shape.cell == "lstm" else 1
    products = [numbers(seed + d, steps, batch, gates * hidden) for d in range(kernel.shape.directions)]
    weights = [
        numbers(seed + 2 + d, gates * hidden, hidden) / np.float32(hidden**0.5)
        for d in range(kernel.shape.directions)
    ]
    biases = [numbers(seed + 4 + d, hidden) for d in range(kernel.shape.directions)]
    states = [numbers(seed + 6 + kind, kernel.shape.directions, batch, hidden) for kind in range(kinds)]
    if not kernel.has_state:
        states = [np.zeros_like(state) for state in states]
    arguments = []
    for product, weight, bias in zip(products, weights, biases, strict=True):
        blocks = interleaved(product.reshape(-1, gates * hidden).T, gates, target.lanes)
        laid = blocks.reshape(-1, steps * batch).T.reshape(steps, batch, -1)
        laid = laid if kernel.products[0] >= kernel.products[1] else laid.swapaxes(0, 1)
        packed, starts = kernel.pack(weight, bias)
        arguments += [np.ascontiguousarray(laid), packed, *([starts] if kernel.shape.cell == "gru" else [])]
    arguments += states if kernel.has_state else []
    first = len(arguments)
    expected = wanted(kernel, products, weights, biases, states)
    is_wanted = [kernel.out is not None, *kernel.gives[:kinds]]
    expected = [array for array, is_there in zip(expected, is_wanted, strict=True) if is_there]
    arguments += [np.full_like(np.ascontiguousarray(array), 7) for array in expected]
    results = run(kernel, target, *arguments)[first:]
    for result, true in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, true, rtol=2e-4, atol=2e-5)


@every_target
@examples_of_kernels
@given(data=st.data())
def test_any_shape(target: Target, data: st.DataObject) -> None:
    """Any sizes, tiles, chunks, states given or not, results wanted or not, steps or sequences outermost."""
    kind = data.draw(st.sampled_from(sorted(GATES)))
    steps, batch, hidden = (data.draw(st.integers(1, most)) for most in (4, 7, 40))
    directions = data.draw(st.integers(1, 2))
    width = GATES[kind] * -(-hidden // target.lanes) * target.lanes
    is_turned = data.draw(st.booleans())
    gives = data.draw(st.booleans()), data.draw(st.booleans()) and kind == "lstm"
    out = None
    if data.draw(st.booleans()) or not any(gives):
        out = batch * directions * hidden, directions * hidden, hidden
    kernel = Recurrence.tuned(
        target,
        data.draw(st.integers(1, 4)),
        shape=RecurrentShape(cell=kind, steps=steps, batch=batch, hidden=hidden, directions=directions),
        products=(width, steps * width) if is_turned else (batch * width, width),
        out=out,
        has_state=data.draw(st.booleans()),
        gives=gives,
    )
    if data.draw(st.booleans()):
        rows = data.draw(st.integers(1, 3))
        tile = Tile(rows, GATES[kind] * data.draw(st.integers(1, 2)))
        kernel = replace(kernel, tile=tile, rows=rows * data.draw(st.integers(1, 3)))
    check(kernel, target)


@every_target
@pytest.mark.parametrize("kind", sorted(GATES))
def test_sizes_of_networks(target: Target, kind: str) -> None:
    def check_size(size: tuple[int, int]) -> None:
        batch, hidden = size
        width = GATES[kind] * -(-hidden // target.lanes) * target.lanes
        kernel = Recurrence.tuned(
            target,
            2,
            shape=RecurrentShape(cell=kind, steps=12, batch=batch, hidden=hidden, directions=2),
            products=(batch * width, width),
            out=(batch * 2 * hidden, 2 * hidden, hidden),
            has_state=True,
            gives=(True, kind == "lstm"),
        )
        check(kernel, target, seed=batch)

    check_each([(1, 100), (3, 64), (17, 33)], check_size)


@every_target
@pytest.mark.parametrize("kind", sorted(GATES))
def test_numbers_that_are_not_reach_their_sequence_alone(target: Target, kind: str) -> None:
    steps, batch, hidden = 3, 5, 6
    width = GATES[kind] * target.lanes * -(-hidden // target.lanes)
    kernel = Recurrence.tuned(
        target,
        1,
        shape=RecurrentShape(cell=kind, steps=steps, batch=batch, hidden=hidden, directions=1),
        products=(batch * width, width),
        out=(batch * hidden, hidden, hidden),
        has_state=False,
        gives=(False, False),
    )
    products = np.zeros((steps, batch, width), np.float32)
    products[1, 2] = np.nan
    packed, starts = kernel.pack(numbers(0, GATES[kind] * hidden, hidden), None)
    out = np.zeros((steps, batch, hidden), np.float32)
    own = [products, packed, *([starts] if kind == "gru" else [])]
    result = run(kernel, target, *own, out)[-1]
    is_nan = np.isnan(result).all(axis=2)
    assert is_nan.tolist() == [[False] * 5, *[[False, False, True, False, False]] * 2]
    assert np.isfinite(np.delete(result, 2, axis=1)).all()


def test_chunks_are_directions_and_parts_of_the_batch() -> None:
    target = Target("avx512", 16, 32, True, "", "")

    def chunks(threads: int, batch: int, directions: int) -> int:
        made = Recurrence.tuned(
            target,
            threads,
            shape=RecurrentShape(cell="lstm", steps=5, batch=batch, hidden=32, directions=directions),
            products=(1, 1),
            out=None,
            has_state=False,
            gives=(True, False),
        )
        return made.chunks

    assert [chunks(1, 64, 1), chunks(2, 64, 1), chunks(2, 64, 2), chunks(4, 1, 2)] == [1, 2, 2, 2]


def model(
    kind: str, hidden: int, features: int, directions: int, layers: int, options: str, outputs: str
) -> tuple[str, dict[str, Array]]:
    """Return the line of a recurrent layer `r` that reads `x`, and its weights."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    weights: dict[str, Array] = {}
    for layer in range(layers):
        width = directions * hidden if layer else features
        for suffix in (f"l{layer}", f"l{layer}_reverse")[:directions]:
            for name, shape in {
                "weight_ih": (gates * hidden, width),
                "weight_hh": (gates * hidden, hidden),
                "bias_ih": (gates * hidden,),
                "bias_hh": (gates * hidden,),
            }.items():
                weights[f"r.{name}_{suffix}"] = numbers(len(weights), *shape) / np.float32(hidden**0.5)
    attributes = " ".join(
        f"@{name[2:]}=({','.join(map(str, array.shape))})f32" for name, array in weights.items()
    )
    flags = f"bidirectional={directions == 2} num_layers={layers} hidden_size={hidden} input_size={features} {options}"
    count = len(outputs.split())
    results = ",".join(("output", "h_n", "c_n")[:count])
    line = (
        f"nn.{kind} r {{inputs}} {count} {{names}} {outputs} bias=True {flags} outputs={results} {attributes}"
    )
    return line, weights


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize(
    ("shape", "directions", "layers", "is_batch_first", "with_states"),
    [
        ((9, 1, 20), 1, 2, False, False),
        ((6, 11, 5), 2, 2, True, True),
        ((1, 1, 24), 1, 1, True, True),
        ((13, 3, 40), 2, 3, False, True),
        ((7, 18), 2, 2, True, False),
        ((7, 18), 1, 1, False, True),
    ],
)
def test_layer_gives_what_numpy_gives(
    tmp_path: Path,
    kind: str,
    shape: tuple[int, ...],
    directions: int,
    layers: int,
    is_batch_first: bool,
    with_states: bool,
) -> None:
    """All that there is of a layer, on any number of threads the same to the bit."""
    hidden = 37
    kinds = (2 if kind == "LSTM" else 1) if with_states else 0
    options = f"batch_first={is_batch_first}" + (" nonlinearity=relu" if kind == "RNN" else "")
    line, weights = model(
        kind, hidden, shape[-1], directions, layers, options, "y h c" if kind == "LSTM" else "y h"
    )
    batch = () if len(shape) == 2 else (shape[0 if is_batch_first else 1],)
    given = [numbers(1, *shape), *(numbers(2, layers * directions, *batch, hidden) for _ in range(kinds))]
    names = ["x", "s", "t"][: len(given)]
    inputs = [
        f"pnnx.Input in_{name} 0 1 {name} #{name}=({','.join(map(str, array.shape))})f32"
        for name, array in zip(names, given, strict=True)
    ]
    results = "y h c" if kind == "LSTM" else "y h"
    text = "\n".join(
        [
            *inputs,
            line.format(inputs=len(given), names=" ".join(names)),
            f"pnnx.Output out {len(results.split())} 0 {results}",
        ]
    )
    plain, *compiled = (
        make_graph(tmp_path, text, weights, backend=backend, threads=threads)
        for backend, threads in (("numpy", 1), ("native", 1), ("native", 2), ("native", 3))
    )
    expected = plain.forward(given)
    first = compiled[0].forward(given)
    for output, true in zip(first, expected, strict=True):
        np.testing.assert_allclose(output, true, rtol=1e-4, atol=1e-5)
    for graph in compiled[1:]:
        assert all(np.array_equal(*pair) for pair in zip(graph.forward(given), first, strict=True))


def test_one_initial_state_of_an_lstm_leaves_the_other_zero(tmp_path: Path) -> None:
    line, weights = model("LSTM", 5, 3, 1, 1, "batch_first=False", "y")
    text = "\n".join(
        [
            "pnnx.Input i 0 1 x #x=(4,2,3)f32",
            "pnnx.Input j 0 1 s #s=(1,2,5)f32",
            line.format(inputs=2, names="x s") + " $input=x $cx=s",
            "pnnx.Output out 1 0 y",
        ]
    )
    given = [numbers(1, 4, 2, 3), numbers(2, 1, 2, 5)]
    (true,), (output,) = (
        make_graph(tmp_path, text, weights, backend=b).forward(given) for b in ("numpy", "native")
    )
    np.testing.assert_allclose(output, true, rtol=1e-5, atol=1e-6)


def test_projection_is_left_to_numpy(tmp_path: Path) -> None:
    shapes = {"weight_ih": "(20,3)", "weight_hh": "(20,2)", "weight_hr": "(2,5)"}
    attributes = " ".join(f"@{name}_l0={shape}f32" for name, shape in shapes.items())
    line = f"nn.LSTM r 1 1 x y bias=False hidden_size=5 input_size=3 proj_size=2 outputs=output {attributes}"
    graph = lowered(tmp_path, "pnnx.Input i 0 1 x #x=(4,2,3)f32", line, "pnnx.Output out 1 0 y")
    assert kinds_of(graph) == ["Fallback"]
