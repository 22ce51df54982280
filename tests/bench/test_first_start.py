"""What a first start is held against."""

import os

import pytest

from tests.bench import first_start
from tests.bench.first_start import RUNTIMES, Start, measure_round
from tests.bench.models import MODELS, ModelFiles
from tests.bench.runtimes import RUNTIMES as KNOWN


def test_both_runtimes_of_a_precision_are_known() -> None:
    for precision, (ours, peer) in RUNTIMES.items():
        assert KNOWN[ours].precision == precision
        assert not KNOWN[ours].is_peer
        assert KNOWN[peer].is_peer


def test_only_the_first_start_of_a_round_finds_an_empty_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folders: list[str] = []

    def start(runtime: str, files: ModelFiles, threads: int) -> Start:
        folders.append(os.environ["KUIPER_CACHE"])
        return Start(len(folders), 0.0)

    monkeypatch.setattr(first_start, "start", start)
    monkeypatch.setenv("KUIPER_CACHE", "/before")
    files = ModelFiles(MODELS["resnet18"], tmp_path_factory.mktemp("model"))
    for _ in range(2):
        measure_round("native", "onnxruntime", files, 1)
    assert folders[0] == folders[1] != folders[3] == folders[4]
    assert os.environ["KUIPER_CACHE"] == "/before"
