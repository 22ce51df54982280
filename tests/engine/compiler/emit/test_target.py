"""Which processor is compiled for, and what the environment may say about it."""

import pytest

from engine.compiler.emit.target import Target, host_target, supported_targets


@pytest.mark.parametrize("target", supported_targets(), ids=lambda target: target.name)
def test_environment_forces_a_target(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    monkeypatch.setenv("KUIPER_TARGET", target.name)
    assert host_target.__wrapped__() == target


def test_target_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUIPER_TARGET", "mmx")
    with pytest.raises(ValueError, match="'mmx' is unknown"):
        host_target.__wrapped__()


def test_target_that_this_processor_does_not_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    narrowest = supported_targets()[-1]
    monkeypatch.setattr("engine.compiler.emit.target.supported_targets", lambda: [narrowest])
    other = "neon" if narrowest.name != "neon" else "avx2"
    monkeypatch.setenv("KUIPER_TARGET", other)
    with pytest.raises(ValueError, match=f"does not run code for {other}"):
        host_target.__wrapped__()
