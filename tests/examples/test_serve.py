import ast
import re
import sys
from importlib.metadata import version
from pathlib import Path
from subprocess import run

ROOT = Path(__file__).parents[2]


def test_all_examples_are_served() -> None:
    shown = run(
        [sys.executable, "-m", "examples.serve", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip() == f"kuiper {version('kuiper-serve')}"
    tree = ast.parse((ROOT / "examples/serve.py").read_text())
    listed = next(
        [name.id for name in node.value.elts if isinstance(name, ast.Name)]
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
    )
    modules = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"__init__", "serve"}
    assert set(listed) == modules


def test_every_example_is_listed_where_contributors_look() -> None:
    modules = {path.name for path in (ROOT / "examples").glob("*.py")} - {"__init__.py"}
    readme = (ROOT / "examples/README.md").read_text(encoding="utf-8")
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((\w+\.py)\)", readme)) == modules
    assert set(re.findall(r"\]\(examples/(\w+\.py)\)", contributing)) == modules
