import inspect
import subprocess
import sys

import engine
import engine.expression


def test_all_names_exist_and_are_documented() -> None:
    assert engine.__all__ == sorted(engine.__all__, key=lambda name: (not name.isupper(), name))
    for name in engine.__all__:
        thing = getattr(engine, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), name


def test_errors_have_one_root() -> None:
    errors = [
        getattr(engine, name)
        for name in engine.__all__
        if name.endswith("Error") and name not in ("DuplicateLayerError",)
    ]
    assert len(errors) > 10
    assert all(issubclass(error, engine.KuiperError) for error in errors)


def test_engine_imports_neither_the_service_nor_its_libraries_nor_the_compiler() -> None:
    modules = ("service", "fastapi", "PIL", "torch", "scipy", "llvmlite")
    code = f"import sys, engine; print([m for m in {modules} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_expressions_are_taken_apart_in_public() -> None:
    assert [token.text for token in engine.tokenize("add(@0,2)")] == ["add", "(", "@0", ",", "2", ")", ""]
    assert engine.tokenize is engine.expression.tokenize
    for name in engine.expression.__all__:
        assert hasattr(engine.expression, name), name
