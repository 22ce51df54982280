"""What docs/v2.md shows works as it stands there."""

import re
import shutil
import subprocess

import pytest

from tests.service.server.process import ROOT, SOON

PAGE = (ROOT / "docs/v2.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found
    return found


def test_client_example(
    address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    for block in blocks("python"):
        values: dict[str, object] = {}
        exec(block.replace("127.0.0.1:8000", address), values)  # the page's own text
        values["client"].close()  # type: ignore[attr-defined]  # whatever the page made
    printed = capsys.readouterr().out
    assert "b'0.9722" in printed
    assert ":7:7'" in printed


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not here")
def test_curl_examples(address: str) -> None:
    for block in blocks("bash"):
        command = block.strip().replace("127.0.0.1:8000", address)
        done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, timeout=SOON, check=True)
        assert b'"error"' not in done.stdout
        assert b"digits" in done.stdout
