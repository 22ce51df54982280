"""Every attack in small: the server lives, returns no 500, and answers right afterwards."""

import sys
from collections.abc import Iterator

import pytest

from tests.attack.attack import Attack, Scale
from tests.attack.attacks import ATTACKS
from tests.attack.measurement import measure, measure_on
from tests.attack.server import AttackedServer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
USUAL = [attack for attack in ATTACKS if attack.is_on_usual_server]
OTHERS = [attack for attack in ATTACKS if not attack.is_on_usual_server]


@pytest.fixture(scope="module")
def server() -> Iterator[AttackedServer]:
    with AttackedServer(USUAL[0]) as running:
        yield running


@pytest.mark.parametrize("attack", USUAL, ids=lambda attack: attack.name)
def test_the_server_outlives_the_attack(server: AttackedServer, attack: Attack) -> None:
    measurement = measure_on(server, attack, Scale.SHORT)
    assert measurement.faults == []
    assert measurement.sent


@pytest.mark.parametrize("attack", OTHERS, ids=lambda attack: attack.name)
def test_a_server_within_limits_outlives_the_attack(attack: Attack) -> None:
    measurement = measure(attack, Scale.SHORT)
    assert measurement.faults == []
    assert measurement.sent
