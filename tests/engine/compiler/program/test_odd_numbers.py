"""Compiled functions of numbers that are rare: infinities, NaN, zeros of both signs, the least and the largest."""

from pathlib import Path

import numpy as np
import pytest

from engine import RuntimeGraph
from engine.dtypes import Array
from tests.cases import check_each
from tests.engine.compiler.program.parity import assert_same, left_to_numpy, open_both

ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 1.5e38, -88.9, 104.0, -0.5], np.float32)
ACTIVATIONS = [
    "F.relu",
    "F.relu6",
    "F.sigmoid",
    "F.tanh",
    "F.silu",
    "F.gelu",
    "F.gelu approximate=tanh",
    "F.mish",
    "F.elu alpha=1.5",
    "F.hardswish",
    "F.hardsigmoid",
    "F.leaky_relu negative_slope=0.1",
    "F.hardtanh min_val=-0.5 max_val=0.7",
    "F.softmax dim=0",
]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activation_of_odd_numbers(tmp_path: Path, activation: str) -> None:
    kind, *given = activation.split()
    line = f"{kind} f 1 1 a b $input=a {' '.join(given)}"
    plain, native, _ = open_both(tmp_path, f"pnnx.Input in 0 1 a #a=(?)f32\n{line}\npnnx.Output o 1 0 b")
    for x in (ODD, np.linspace(-12, 12, 100, dtype=np.float32)):
        assert_same(native.forward([x])[0], plain.forward([x])[0])
        assert left_to_numpy(native, [x]) == set()


EXPRESSIONS = [
    *("add(@0,@1)", "sub(@0,@1)", "mul(@0,@1)", "div(@0,@1)", "max(@0,@1)", "min(@0,@1)", "pow(@0,@1)"),
    *("neg(@0)", "abs(@0)", "sqrt(@0)", "rsqrt(@0)", "square(@0)", "reciprocal(@0)", "exp(@0)", "log(@0)"),
    *(
        "tanh(@0)",
        "erf(@0)",
        "floor(@0)",
        "ceil(@0)",
        "round(@0)",
        "pow(@0,2)",
        "pow(@0,0.5)",
        "pow(@0,-1)",
        "pow(2,@0)",
    ),
    *("div(@0,0)", "div(1,@0)", "mul(@0,-0.0)", "mul(@0,0.0)", "add(@0,1e-46)", "pow(@0,3)"),
    *("sub(1,@0)", "mul(@0,9000000000000000000)"),
]
LEFT = [
    *("floor_divide(@0,@1)", "remainder(@0,@1)", "fmod(@0,@1)", "atan2(@0,@1)", "tan(@0)"),
    *("mul(@0,mul(2,3))", "add(@0,div(7,2))", "mul(@0,1e39)", "sign(@0)"),
]
"""Expressions that are left to numpy."""


def dynamic_expression(folder: Path, expression: str) -> tuple[list[RuntimeGraph], list[Array]]:
    """Return the graphs of an expression, and its inputs: all pairs of odd numbers."""
    count = 2 if "@1" in expression else 1
    lines = [f"pnnx.Input in{i} 0 1 {'ab'[i]} #{'ab'[i]}=(?)f32" for i in range(count)]
    lines += [
        f"pnnx.Expression e {count} 1 {'a b'[: 2 * count - 1]} c expr={expression}",
        "pnnx.Output o 1 0 c",
    ]
    pairs = np.array(np.meshgrid(ODD, ODD), np.float32).reshape(2, -1)
    return open_both(folder, "\n".join(lines)), list(pairs[:count])


def test_expression_of_odd_numbers(tmp_path: Path) -> None:
    def check(expression: str) -> None:
        folder = tmp_path / expression
        folder.mkdir()
        (plain, native, _), inputs = dynamic_expression(folder, expression)
        assert_same(native.forward(inputs)[0], plain.forward(inputs)[0])
        assert left_to_numpy(native, inputs) == set()
        assert native.verification.refused == ()

    check_each(EXPRESSIONS, check)


@pytest.mark.parametrize("expression", LEFT)
def test_expression_without_a_kernel_is_left_to_numpy(tmp_path: Path, expression: str) -> None:
    (_, native, _), inputs = dynamic_expression(tmp_path, expression)
    assert left_to_numpy(native, inputs) == {"pnnx.Expression"}
