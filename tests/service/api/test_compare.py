"""Runs beside others: what differs is what `kuiper check --layers` finds."""

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from httpx import AsyncClient

from engine import RuntimeGraph, TensorSpec
from service.commands.dispatch import run_command
from service.config.settings import Settings
from service.inspection.comparison_schemas import ComparisonView
from tests.service.api.responses import VECTOR as VECTOR_BODY
from tests.service.api.responses import check_error
from tests.service.conftest import serving
from tests.service.models import PAIR, VECTOR, add_model, add_versions

pytestmark = pytest.mark.anyio

DIGITS = Path(__file__).parents[3] / "models/digits"
SEVEN = (DIGITS / "samples/7.png").read_bytes()
NEGATED = VECTOR.replace("nn.ReLU     relu", "pnnx.Expression relu").replace(
    "1 1 0 1 #0=(?,3)f32 #1=(?,3)f32", "1 1 0 1 expr=neg(@0) #0=(?,3)f32 #1=(?,3)f32"
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    root = tmp_path_factory.mktemp("models")
    add_versions(root, "versions", {"1": VECTOR, "2": NEGATED})
    add_model(root, "pair", PAIR)
    (root / "digits").symlink_to(DIGITS)
    return Settings(models=root, workers=1, warm_up=False)


async def compare(client: AsyncClient, query: str, **body: Any) -> ComparisonView:
    response = await client.post(f"/compare?{query}", **body)
    assert response.status_code == 200, response.text
    return ComparisonView.model_validate(response.json(), strict=True)


def npz(arrays: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.fixture(scope="module")
def layers() -> dict[str, Any]:
    """What every operator of digits gives for some input, the input included."""
    graph = RuntimeGraph(DIGITS / "digits.pnnx.param", backend="numpy")
    graph.build()
    image = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
    captured = graph.run([image], capture=list(graph.operands)).captured
    return {name: value for name, value in captured.items() if isinstance(value, np.ndarray)}


async def test_compiled_kernels_agree_with_numpy(client: AsyncClient) -> None:
    shown = await compare(client, "model=digits&with_backend=numpy", content=SEVEN)
    assert (shown.first, shown.agree) == (None, True)
    assert shown.compared > 3
    assert shown.right.label == "digits, version 1, backend numpy"
    for operator in shown.operators:
        assert operator.left_ms is not None
        assert operator.right_ms is not None
        assert operator.max_rel is None or operator.max_rel < 1e-3
    assert max(operator.right_ms or 0 for operator in shown.operators) > 0


async def test_the_first_operator_that_differs_is_that_of_the_command(
    client: AsyncClient, layers: dict[str, Any], tmp_path: Path
) -> None:
    graph = RuntimeGraph(DIGITS / "digits.pnnx.param")
    graph.build()
    seen = graph.observable([TensorSpec((1, 1, 28, 28), np.dtype(np.float32))])
    visible = [name for name, end in seen.items() if name == end and name in layers]
    spoiled = visible[len(visible) // 2]
    reference = layers | {spoiled: layers[spoiled] + 1}
    path = tmp_path / "reference.npz"
    path.write_bytes(npz(reference))
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert run_command(["check", str(DIGITS), "--layers", str(path)]) == 1
    (line,) = [line for line in printed.getvalue().splitlines() if line.startswith("first divergence")]
    shown = await compare(client, "model=digits", files={"reference": ("r.npz", path.read_bytes())})
    assert shown.first is not None
    assert f" {shown.first}, operand" in line
    assert not shown.agree
    assert shown.right.label == "the reference"
    diverging = {operator.name: operator for operator in shown.operators}[shown.first]
    assert diverging.problem is not None
    assert diverging.max_abs is not None
    assert diverging.max_abs > 0.5
    good = await compare(client, "model=digits", files={"reference": ("r.npz", npz(layers))})
    assert (good.first, good.agree) == (None, True)


async def test_an_input_may_stand_beside_the_reference(client: AsyncClient, layers: dict[str, Any]) -> None:
    graph = RuntimeGraph(DIGITS / "digits.pnnx.param", backend="numpy")
    graph.build()
    (port,) = graph.inputs
    file = io.BytesIO()
    np.save(file, layers[port.operand])
    others = {name: value for name, value in layers.items() if name != port.operand}
    files = {"reference": ("r.npz", npz(others)), "file": ("x.npy", file.getvalue())}
    assert (await compare(client, "model=digits", files=files)).agree


async def test_versions_are_compared(client: AsyncClient) -> None:
    shown = await compare(client, "model=versions&version=1&with_version=2", json=VECTOR_BODY)
    assert shown.first == "relu"
    relu = {operator.name: operator for operator in shown.operators}["relu"]
    assert (relu.max_abs, relu.problem) == (4.0, "differs by up to 4")  # max(x, 0) and -x, of -1, 0.5 and 2
    same = await compare(client, "model=versions&version=1&with_version=1", json=VECTOR_BODY)
    assert same.agree


async def test_a_lower_precision_is_measured_in_decibels(client: AsyncClient) -> None:
    shown = await compare(client, "model=digits&with_precision=bf16&tolerance=1", content=SEVEN)
    assert shown.right.label.endswith("precision bf16")
    ratios = [operator.snr_db for operator in shown.operators if operator.snr_db is not None]
    assert all(ratio > 20 for ratio in ratios)


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("model=versions", 422, "invalid_parameter"),
        ("model=versions&with_version=1&with_backend=numpy", 422, "invalid_parameter"),
        ("model=versions&with_version=9", 404, "version_not_found"),
        ("model=versions&with_backend=torch", 422, "invalid_parameter"),
        ("model=none&with_backend=numpy", 404, "model_not_found"),
        ("model=pair&with_backend=numpy", 422, "missing_input"),
        ("model=versions&with_precision=int8&tolerance=nan", 422, "invalid_parameter"),
    ],
)
async def test_errors(client: AsyncClient, query: str, status: int, code: str) -> None:
    body = {"inputs": [{"name": "a", "data": [1.0, 2.0]}]} if "pair" in query else VECTOR_BODY
    check_error(await client.post(f"/compare?{query}", json=body), status, code)


async def test_a_reference_of_other_names_is_an_error(client: AsyncClient) -> None:
    files = {"reference": ("r.npz", npz({"nothing": np.zeros(1)})), "file": ("7.png", SEVEN)}
    check_error(await client.post("/compare?model=digits", files=files), 422, "input_mismatch")
    files = {"reference": ("r.npz", b"no npz"), "file": ("7.png", SEVEN)}
    check_error(await client.post("/compare?model=digits", files=files), 400, "invalid_npz")
    files = {"reference": ("r.npz", npz({"nothing": np.zeros(1)}))}
    check_error(await client.post("/compare?model=digits", files=files), 400, "invalid_multipart")


async def test_two_references_are_an_error(client: AsyncClient, layers: dict[str, Any]) -> None:
    files = [("reference", ("r.npz", npz(layers))), ("reference", ("s.npz", npz({"nothing": np.zeros(1)})))]
    check_error(await client.post("/compare?model=digits", files=files), 400, "invalid_multipart")


async def test_files_that_have_changed_are_not_compared(tmp_path: Path) -> None:
    (param,) = add_model(tmp_path, "vector", VECTOR).glob("*.param")
    async with serving(Settings(models=tmp_path, workers=1, warm_up=False)) as client:
        param.write_text(param.read_text().replace("nn.ReLU", "nn.SiLU"))
        response = await client.post("/compare?model=vector&with_backend=numpy", json=VECTOR_BODY)
    check_error(response, 409, "model_changed")
