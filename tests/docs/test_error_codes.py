"""The page on error codes lists every code that the service answers with, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
ERROR = "ServiceError"
Function = ast.FunctionDef | ast.AsyncFunctionDef
FRAMEWORK = {"http_…"}
"""What the page writes for codes that are made of a number."""


def trees() -> list[ast.Module]:
    return [ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "service").rglob("*.py"))]


def codes_in(modules: list[ast.Module]) -> set[str]:
    """Return the codes of all errors that modules make."""
    kinds = ast.FunctionDef, ast.AsyncFunctionDef
    functions = [node for module in modules for node in ast.walk(module) if isinstance(node, kinds)]
    calls = [node for module in modules for node in ast.walk(module) if isinstance(node, ast.Call)]
    found: set[str] = set()
    for function in functions:
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            if name_of(call) == ERROR and len(call.args) > 1:
                found |= set(texts(call.args[1], function, calls))
    return found


def texts(node: ast.expr, function: Function, calls: list[ast.Call]) -> Iterator[str]:
    """Yield what an expression in a function may be: a text, a name that is given one, or a parameter's values."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from texts(body, function, calls)
            yield from texts(orelse, function, calls)
        case ast.JoinedStr(values=[ast.Constant(value=str(lead)), ast.FormattedValue(value=part)]):
            options = list(texts(part, function, calls))
            yield from (lead + option for option in options or ["…"])
        case ast.Name(id=name):
            yield from assigned(name, function, calls)


def assigned(name: str, function: Function, calls: list[ast.Call]) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                names, values = [target], [node.value]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    names, values = target.elts, node.value.elts
                for one, value in zip(names, values, strict=True):
                    if isinstance(one, ast.Name) and one.id == name:
                        yield from texts(value, function, calls)
    parameters = [argument.arg for argument in function.args.args if argument.arg != "self"]
    if name in parameters:
        for call in calls:
            if name_of(call) == function.name and len(call.args) > parameters.index(name):
                yield from texts(call.args[parameters.index(name)], function, [])


def name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def listed() -> list[str]:
    return re.findall(r"^- `([^`]+)` \((?:\d{3}|any)\): ", PAGE, re.MULTILINE)


def test_every_code_is_listed_once_with_cause_and_cure() -> None:
    codes = codes_in(trees())
    assert len(codes) > 60
    assert sorted(listed()) == sorted(codes)
    for row in re.findall(r"^- `.*$", PAGE, re.MULTILINE):
        assert row.endswith("."), row


def test_statuses_are_those_of_the_source() -> None:
    shown = dict(re.findall(r"^- `([^`]+)` \((\d{3})\): ", PAGE, re.MULTILINE))
    for module in trees():
        for call in (node for node in ast.walk(module) if isinstance(node, ast.Call)):
            if name_of(call) == ERROR and len(call.args) > 1:
                match call.args[:2]:
                    case [ast.Constant(value=int(status)), ast.Constant(value=str(code))]:
                        row = next(line for line in PAGE.splitlines() if line.startswith(f"- `{code}` "))
                        assert str(shown[code]) == str(status) or f"`/v2`: {status}" in row, code


def test_codes_are_found_in_every_form_that_the_service_uses() -> None:
    module = ast.parse(
        """
def one(kind): raise ServiceError(400, f"unknown_{kind}", "")
def two(): return one("input")
def three(given): code = "a" if given else "b"; raise ServiceError(401, code, "")
def four(status): code, text = f"http_{status}", ""; raise ServiceError(status, code, text)
"""
    )
    assert codes_in([module]) == {"unknown_input", "a", "b", "http_…"}
