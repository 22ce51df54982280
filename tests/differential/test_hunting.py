"""Long runs: a wrong case is found, made small and reported; what rules choose is counted."""

from engine.compiler.emit.target import supported_targets
from tests.differential.case import GraphCase, named_cases
from tests.differential.comparison import Finding, Mode, Tally, compare
from tests.differential.hunting import Extent, hunt
from tests.differential.reporting import table
from tests.differential.selections import Selections, counted


def test_a_wrong_case_is_made_small_and_told_of() -> None:
    noted: list[str] = []

    def check(case: GraphCase, index: int, tally: Tally) -> Finding | None:
        is_wrong = any(line.type == "torch.cat" for line in case.operators)
        return Finding("difference", "a planted fault") if is_wrong else None

    report = hunt(Extent(0, 0, 60), [check], lambda case: noted.append(case.name))
    assert report.graphs == len(noted) == 60 + len(named_cases())
    assert report.findings
    for case, _ in report.findings:
        assert [line.type for line in case.operators] == ["torch.cat"]
    text = table(report)
    assert "difference: a planted fault" in text
    assert "branches of selection" in text


def test_a_long_run_ends_after_its_seconds() -> None:
    report = hunt(Extent(0, 0, 1_000_000, seconds=0), [], lambda case: None)
    assert report.graphs == len(named_cases())


def test_chosen_kernels_are_counted() -> None:
    found = Selections()
    with counted(found):
        case = next(case for case in named_cases() if case.name == "streamed_convolution")
        assert compare(case, [Mode(supported_targets()[0])]) is None
    assert found["Convolution", "StreamedConvolution"] == 2  # alone, and with helpers
