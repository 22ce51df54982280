import pytest

from service.errors import did_you_mean


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("digit", "; did you mean 'digits'?"),
        ("DIGITS", "; did you mean 'digits'?"),
        ("Resnet-18", "; did you mean 'ResNet18'?"),
        ("cats", ""),
        ("", ""),
        ("digits" * 1000, ""),
    ],
)
def test_nearest_name(name: str, hint: str) -> None:
    assert did_you_mean(name, ["digits", "digit-scenes", "ResNet18"]) == hint
    assert did_you_mean(name, []) == ""
