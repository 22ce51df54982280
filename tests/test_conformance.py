"""Conformance runs: which cases there are, and what makes one fail."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.conformance import corpus_cases, golden_cases, load_arrays, main, run_case
from tests.golden.cases import families
from tests.golden.network_data import NAMES

RELU = "F.relu6-"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Write a case of the golden data as a folder of a corpus."""
    cases = golden_cases(RELU)  # keeps the files of the case that it gave last
    case = next(cases)
    folder = tmp_path / "relu6"
    folder.mkdir()
    for suffix in (".param", ".bin"):
        (folder / f"case.pnnx{suffix}").write_bytes(case.param.with_suffix(suffix).read_bytes())
    np.savez(folder / "inputs.npz", **{f"in_{i}": array for i, array in enumerate(case.inputs)})  # type: ignore[arg-type]
    np.savez(folder / "outputs.npz", **{f"out_{i}": array for i, array in enumerate(case.outputs)})  # type: ignore[arg-type]
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["conformance", *arguments])
    return main()


def test_all_models_of_the_golden_data_are_cases() -> None:
    names = [case.name for case in golden_cases("")]
    assert len(names) == len(NAMES) + sum(map(len, families().values()))
    assert len(names) > 1000


def test_case_of_a_corpus_passes(corpus: Path) -> None:
    (case,) = corpus_cases(corpus, "relu")
    assert run_case(case, "numpy") is None
    assert run_case(case, "native") is None
    assert list(corpus_cases(corpus, "conv")) == []


def test_output_that_differs_fails(corpus: Path) -> None:
    (case,) = corpus_cases(corpus, "")
    assert (problem := run_case(replace(case, outputs=[case.outputs[0] + 0.01]), "numpy")) is not None
    assert problem.startswith("output 0: largest difference 0.01")
    assert run_case(replace(case, outputs=case.outputs * 2), "numpy") == "1 outputs instead of 2"
    wrong_type = replace(case, outputs=[case.outputs[0].astype(np.float64)])
    assert "instead of float64" in (run_case(wrong_type, "numpy") or "")


def test_model_that_cannot_run_fails_with_the_reason(corpus: Path) -> None:
    (case,) = corpus_cases(corpus, "")
    assert (run_case(replace(case, inputs=[]), "numpy") or "").startswith("InputError: ")


def test_totals_decide_the_exit_status(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, str(corpus)) == 0
    assert capsys.readouterr().out.endswith("\n1 passed, 0 failed\n")
    arrays = load_arrays(corpus / "relu6/outputs.npz", "out")
    np.savez(corpus / "relu6/outputs.npz", out_0=arrays[0] + 1)
    assert run(monkeypatch, str(corpus)) == 1
    assert "FAIL" in capsys.readouterr().out


def test_folder_without_cases_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, str(tmp_path)) == 1
    assert "each is a folder with case.pnnx.param" in capsys.readouterr().out
