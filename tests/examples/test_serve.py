import ast
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
