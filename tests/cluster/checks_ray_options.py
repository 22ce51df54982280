"""The deployment of the application, whose options Ray Serve checks."""

from typing import Any

import pytest

from service.ray import application, build

pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray's own


def _deployed(**options: Any) -> Any:
    return application({"models": "models"}, **options)._bound_deployment


def test_replicas_have_the_options() -> None:
    deployed = _deployed(num_replicas=3, max_replicas_per_node=1, ray_actor_options={"num_cpus": 2})
    assert (deployed.name, deployed.num_replicas) == ("Kuiper", 3)
    assert deployed._replica_config.max_replicas_per_node == 1
    assert deployed.ray_actor_options == {"num_cpus": 2}
    assert deployed.init_args == ({"models": "models"},)


def test_options_that_are_not_given_have_defaults() -> None:
    deployed = build({"models": "models"})._bound_deployment
    assert (deployed.num_replicas, deployed.ray_actor_options) == (1, {"num_cpus": 1})
    assert deployed.max_ongoing_requests == 1_000_000, "the queues of the replica refuse requests"


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="replicas"):
        _deployed(replicas=2)
