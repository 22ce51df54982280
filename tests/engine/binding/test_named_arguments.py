from typing import Any

from engine.binding.registry import only_named


def test_what_a_function_does_not_name_is_left_out() -> None:
    def rule(*inputs: int, scale: int = 1) -> tuple[Any, ...]:
        return (*inputs, scale)

    assert only_named(rule)(1, 2, scale=3, bias=4) == (1, 2, 3)
    assert only_named(rule)(bias=4) == (1,)


def test_a_function_that_takes_any_arguments_gets_all() -> None:
    def rule(**arguments: int) -> dict[str, int]:
        return arguments

    assert only_named(rule)(scale=3, bias=4) == {"scale": 3, "bias": 4}
