"""Programs are compiled once per combination of shapes, and the latest are kept."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.compiler.emit.jit import cache
from engine.compiler.program.assembler import compile_plan
from engine.compiler.program.instruction import NativeSteps
from engine.compiler.program.programs import Programs
from engine.run.executor import PROGRAMS_KEPT
from engine.run.plan import Plan
from engine.spec import TensorSpec
from tests.engine.compiler.plans import ROWS, conv, linear, plan_of, weights_of
from tests.engine.models import make_graph

LINES = (ROWS, linear("l", "x", "y"), "pnnx.Output out 1 0 y")
FLOAT = np.dtype(np.float32)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that were compiled."""
    plans: list[Plan] = []

    def note(plan: Plan, *rest: Any) -> Any:
        plans.append(plan)
        return compile_plan(plan, *rest)

    monkeypatch.setattr("engine.compiler.program.programs.compile_plan", note)
    return plans


def shapes(batch: int) -> tuple[TensorSpec, ...]:
    return (TensorSpec((batch, 3, 4), FLOAT),)


def plan_for(folder: Path, batch: int) -> Plan:
    return plan_of(folder, *LINES, shapes={"x": (batch, 3, 4)})[0]


def test_each_combination_is_compiled_once(tmp_path: Path, compilations: list[Plan]) -> None:
    programs = Programs(["x"], ["y"], 1, verifies=False)
    plan = plan_for(tmp_path, 1)
    first = programs.find(shapes(1), plan)
    assert first is not None
    assert programs.find(shapes(1), plan) is first
    assert programs.find(shapes(2), plan_for(tmp_path, 2)) is not first
    assert len(compilations) == 2


def test_least_recently_used_goes_first(tmp_path: Path, compilations: list[Plan]) -> None:
    programs = Programs(["x"], ["y"], 1, verifies=False)
    plans = [plan_for(tmp_path, batch + 1) for batch in range(PROGRAMS_KEPT + 1)]
    for batch, plan in enumerate(plans[:-1]):
        programs.find(shapes(batch), plan)
    programs.find(shapes(0), plans[0])
    programs.find(shapes(PROGRAMS_KEPT), plans[-1])  # the second one goes
    programs.find(shapes(0), plans[0])
    assert len(compilations) == PROGRAMS_KEPT + 1
    programs.find(shapes(1), plans[1])
    assert len(compilations) == PROGRAMS_KEPT + 2


def test_plan_without_work_for_kernels_has_no_program(tmp_path: Path, compilations: list[Plan]) -> None:
    plan, _ = plan_of(tmp_path, ROWS, "torch.cumprod c 1 1 x y dim=0 $input=x", "pnnx.Output out 1 0 y")
    programs = Programs(["x"], ["y"], 1, verifies=False)
    assert programs.find(shapes(2), plan) is None
    assert programs.find(shapes(2), plan) is None
    assert len(compilations) == 1


def test_threads_that_ask_at_once_get_one_program(tmp_path: Path, compilations: list[Plan]) -> None:
    programs = Programs(["x"], ["y"], 1, verifies=False)
    plan = plan_for(tmp_path, 1)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: programs.find(shapes(1), plan), range(16)))
    assert all(program is found[0] for program in found)
    assert len(compilations) == 1


def test_programs_share_packed_weights(tmp_path: Path) -> None:
    programs = Programs(["x"], ["y"], 1, verifies=False)
    first, second = (programs.find(shapes(batch), plan_for(tmp_path, batch)) for batch in (1, 2))
    assert first is not None
    assert second is not None
    shared = {id(array) for array in first.constants} & {id(array) for array in second.constants}
    assert shared


def test_packed_weights_go_with_the_programs_that_use_them(tmp_path: Path) -> None:
    programs = Programs(["x"], ["y"], 1, verifies=False)
    for batch in range(PROGRAMS_KEPT + 1):
        programs.find(shapes(batch + 1), plan_for(tmp_path, batch + 1))
    gc.collect()
    assert programs._packed
    programs._known.clear()
    gc.collect()
    assert not programs._packed


def test_kernels_go_with_the_programs_that_use_them(tmp_path: Path) -> None:
    programs = Programs(["x"], ["y"], 1, verifies=False)
    program = programs.find(shapes(37), plan_for(tmp_path, 37))
    assert program is not None
    codes = [
        weakref.ref(step.code)
        for steps in program.instructions
        if isinstance(steps, NativeSteps)
        for step in steps.segment.steps
    ]
    before = len(cache._codes)
    del program, programs
    gc.collect()
    assert [code() for code in codes] == [None] * len(codes)
    assert len(cache._codes) == before - len(codes)


SIZED = (
    "pnnx.Input in 0 1 x #x=(1,4,?,3)f32",
    "Tensor.size size 1 1 x n dim=2 $input=x",
    "pnnx.Attribute w 0 1 w @data=(4,4,1,1)f32",
    "pnnx.Expression scale 2 1 w n v expr=mul(@0,@1)",
)
WEIGHTS_OF_SIZES = {
    "convolution": (
        *SIZED,
        "F.conv2d c 2 1 x v y bias=None dilation=(1,1) groups=1 padding=(0,0) stride=(1,1) $input=x $weight=v",
    ),
    "transposed convolution": (
        *SIZED,
        "F.conv_transpose2d c 2 1 x v y bias=None dilation=(1,1) groups=1 output_padding=(0,0) padding=(0,0) "
        "stride=(1,1) $input=x $weight=v",
    ),
    "linear": (
        "pnnx.Input in 0 1 x #x=(1,4,?,3)f32",
        "Tensor.size size 1 1 x n dim=2 $input=x",
        "pnnx.Attribute w 0 1 w @data=(2,3)f32",
        "pnnx.Expression scale 2 1 w n v expr=mul(@0,@1)",
        "F.linear l 2 1 x v y bias=None $input=x $weight=v",
    ),
    "folded factor": (
        "pnnx.Input in 0 1 x #x=(1,3,?,3)f32",
        "Tensor.size size 1 1 x n dim=2 $input=x",
        "pnnx.Attribute w 0 1 w @data=(4,1,1)f32",
        "pnnx.Expression scale 2 1 w n v expr=mul(@0,@1)",
        conv("c", "x", "z"),
        "pnnx.Expression affine 3 1 z v w y expr=add(mul(@0,@1),@2)",
    ),
}


@pytest.mark.parametrize("name", WEIGHTS_OF_SIZES)
def test_weights_that_depend_on_shapes_are_not_shared(tmp_path: Path, name: str) -> None:
    lines = "\n".join((*WEIGHTS_OF_SIZES[name], "pnnx.Output out 1 0 y"))
    plain, native = (
        make_graph(tmp_path, lines, weights_of(lines), backend=backend) for backend in ("numpy", "native")
    )
    for rows in (5, 7, 5):
        x = np.ones((1, 3 if name == "folded factor" else 4, rows, 3), np.float32)
        np.testing.assert_allclose(native.forward([x])[0], plain.forward([x])[0], rtol=1e-5)
