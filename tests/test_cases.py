import pytest

from tests.cases import check_each


def test_all_that_fail_are_named() -> None:
    def check(case: int) -> None:
        assert case % 2 == 0

    check_each([0, 2], check)
    with pytest.raises(ExceptionGroup, match="2 of 4 cases failed: 1; 3") as caught:
        check_each(range(4), check)
    assert [error.__notes__ for error in caught.value.exceptions] == [["case: 1"], ["case: 3"]]


def test_an_empty_table_is_no_success() -> None:
    with pytest.raises(ValueError, match="no cases"):
        check_each([], print)


def test_an_exception_that_is_not_raised_is_a_failure_of_its_case() -> None:
    def check(case: str) -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            int(case)

    with pytest.raises(ExceptionGroup, match="1 of 2 cases failed: '7'"):
        check_each(["seven", "7"], check)
