"""What CI and releases call exists, and is called with the versions that are declared."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "docs/explanation/maintaining.md"]
CALLERS = [*sorted((ROOT / ".github/workflows").glob("*.yml")), ROOT / ".ci/run", *PAGES]
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def load(path: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / path).read_text())
    return loaded


def notes(version: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--silent", "--no-print-directory", "notes", f"VERSION={version}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", CALLERS, ids=lambda path: path.name)
def test_targets_that_are_called_exist(path: Path) -> None:
    for target in re.findall(r"(?:^|\n|run: |`|; )\s*make (?:--silent )?([a-z][a-z-]*)", path.read_text()):
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target


def test_lowest_versions_are_tried_with_the_lowest_python() -> None:
    steps = load(".github/workflows/ci.yml")["jobs"]["lowest"]["steps"]
    (python,) = [step["with"]["python-version"] for step in steps if "setup-python" in step.get("uses", "")]
    assert PROJECT["requires-python"] == f">={python}"


def test_one_job_does_what_ci_does() -> None:
    steps = load(".github/workflows/ci.yml")["jobs"]["all"]["steps"]
    assert "bash .ci/run" in [step.get("run") for step in steps]


def test_nothing_is_released_that_was_not_checked_and_audited() -> None:
    jobs = load(".github/workflows/release.yml")["jobs"]
    assert jobs["audit"]["uses"] == "./.github/workflows/audit.yml"
    for name in ("image", "publish"):
        assert {"check", "audit", "dist"} <= set(jobs[name]["needs"])
    for needed in ("check", "audit", "dist"):
        assert f"needs.{needed}.result == 'success'" in jobs["publish"]["if"]
    steps = load(".github/workflows/audit.yml")["jobs"]["audit"]["steps"]
    assert any(step.get("run", "").startswith("make audit") for step in steps)


def test_releases_show_what_they_are_made_of() -> None:
    jobs = load(".github/workflows/release.yml")["jobs"]
    (built,) = [step["with"] for step in jobs["image"]["steps"] if "build-push" in step.get("uses", "")]
    assert built["sbom"]
    assert built["provenance"]
    commands = [step.get("run", "") for step in jobs["dist"]["steps"]]
    order = ["make dist", "make sbom", "sha256sum"]
    places = [next(place for place, run in enumerate(commands) if word in run) for word in order]
    assert places == sorted(places)


def test_every_list_of_pinned_packages_is_audited() -> None:
    recipe = MAKEFILE[MAKEFILE.index("\naudit:") :].split("\n\n")[0]
    assert "deploy/*constraints.txt" in recipe
    assert "--strict" in recipe  # what cannot be looked up is no success


def test_workflows_may_only_read_unless_a_job_says_why() -> None:
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        workflow = load(str(path.relative_to(ROOT)))
        assert workflow["permissions"] == {"contents": "read"}, path.name
        for step in (step for job in workflow["jobs"].values() for step in job.get("steps", ())):
            if "actions/checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False, path.name


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda path: path.name
)
def test_workflows_name_only_what_there_is(path: Path) -> None:
    jobs = load(str(path.relative_to(ROOT)))["jobs"]
    for job in jobs.values():
        assert set(job.get("needs", ())) <= set(jobs)
        assert "uses" in job or {"runs-on", "timeout-minutes", "steps"} <= set(job)
        if job.get("uses", "").startswith("./"):
            called: dict[Any, Any] = load(job["uses"].removeprefix("./"))
            assert "workflow_call" in called[True]  # YAML takes the key `on` for a boolean
        text = yaml.safe_dump(job)
        assert set(re.findall(r"needs\.([a-z]+)\.", text)) <= set(job.get("needs", ()))
        steps = job.get("steps", ())
        ids = {step["id"] for step in steps if "id" in step}
        assert set(re.findall(r"steps\.([a-z]+)\.outputs", text)) <= ids
        assert set(re.findall(r"matrix\.([a-z]+)", text)) <= set(job.get("strategy", {}).get("matrix", ()))
        for step in steps:
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"[\w-]+/[\w-]+@\S+", step.get("uses", "a/b@c")), step


def test_what_a_release_uploads_is_what_it_publishes() -> None:
    jobs = load(".github/workflows/release.yml")["jobs"]
    (sent,) = [step["with"] for step in jobs["dist"]["steps"] if "upload-artifact" in step.get("uses", "")]
    (taken,) = [
        step["with"] for step in jobs["publish"]["steps"] if "download-artifact" in step.get("uses", "")
    ]
    assert sent["name"] == taken["name"]
    (command,) = [step["run"] for step in jobs["publish"]["steps"] if "run" in step]
    for name in sent["path"].split():
        assert name.removesuffix("/") in command


def test_uvicorn_has_an_upper_bound() -> None:
    """The connection is built on names that uvicorn keeps to itself."""
    (bound,) = [line for line in PROJECT["dependencies"] if line.startswith("uvicorn")]
    assert "<" in bound


def test_hooks_run_the_tools_of_the_environment() -> None:
    """Nothing is downloaded, and what a hook finds, `make lint` finds."""
    (repository,) = load(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    recipe = MAKEFILE[MAKEFILE.index("\nlint:") :].split("\n\n")[0]
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        tool, *rest = hook["entry"].removeprefix(".venv/bin/").split()
        command = " ".join([tool, *rest[:1]]) if tool == "ruff" else tool
        assert f"$(BIN)/{command}" in recipe, command


@needs_make
def test_release_notes_are_the_part_of_the_changelog() -> None:
    said = notes(PROJECT["version"])
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip() in (ROOT / "CHANGELOG.md").read_text()
    assert "\n## " not in said.stdout


@needs_make
def test_version_without_a_part_of_the_changelog_is_no_release() -> None:
    assert notes("0.0.0").returncode != 0


@needs_make
def test_what_make_test_leaves_out_without_pytorch_is_run_with_it() -> None:
    asked = ["make", "--dry-run", "--no-print-directory", "recipes"]
    run = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    with_torch = [
        path
        for folder in ("tests/engine", "tests/service")
        for path in (ROOT / folder).rglob("test_*.py")
        if 'importorskip("torch")' in path.read_text(encoding="utf-8")
    ]
    assert with_torch
    for path in with_torch:
        assert path.relative_to(ROOT).as_posix() in run
