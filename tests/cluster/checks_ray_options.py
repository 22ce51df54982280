"""The deployment options of `build`, which Ray Serve checks."""

from typing import Any

import pytest

from service.config.setting_file import SettingsError
from service.ray import build
from service.ray.autoscaling import LoadPolicy

pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray's own


def _deployed(**options: Any) -> Any:
    return build({"models": "models", "deployment": options})._bound_deployment


def test_replicas_have_the_options() -> None:
    deployed = _deployed(num_replicas=3, num_cpus=2, memory=1 << 30, max_replicas_per_node=1)
    assert (deployed.name, deployed.num_replicas) == ("Kuiper", 3)
    assert deployed._replica_config.max_replicas_per_node == 1
    assert deployed.ray_actor_options == {"num_cpus": 2, "memory": 1 << 30}
    assert deployed.init_args == ({"models": "models"},)
    assert (_deployed().num_replicas, _deployed().ray_actor_options) == (1, {"num_cpus": 1.0})


def test_autoscaling_is_by_the_load_of_workers() -> None:
    config = _deployed(autoscaling={"max_replicas": 4, "target_load": 0.5})._deployment_config
    scaling = config.autoscaling_config
    assert (scaling.min_replicas, scaling.max_replicas, scaling.downscale_delay_s) == (1, 4, 60.0)
    policy = scaling.policy.get_policy()(**scaling.policy.policy_kwargs)
    assert type(policy).__name__ == LoadPolicy.__name__
    assert policy._target == 0.5


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"replicas": 2}, "unexpected keyword argument 'replicas'"),
        ({"max_ongoing_requests": 2}, "unexpected keyword argument 'max_ongoing_requests'"),
        ({"num_replicas": 0}, "num_replicas"),
        ({"num_replicas": -1}, "num_replicas"),
        ({"num_replicas": 2, "autoscaling": {"max_replicas": 2}}, "num_replicas is not allowed"),
        ({"num_cpus": 0}, "num_cpus is above 0, got 0"),
        ({"health_check_period_s": 0}, "health_check_period_s"),
        ({"max_surge_percent": 101}, "max_surge_percent"),
        ({"autoscaling": {}}, "'max_replicas'"),
        ({"autoscaling": {"max_replica": 2}}, "'max_replica'"),
        ({"autoscaling": {"min_replicas": 0, "max_replicas": 2}}, "min_replicas is at least 1, got 0"),
        ({"autoscaling": {"min_replicas": 3, "max_replicas": 2}}, "max_replicas"),
        ({"autoscaling": {"max_replicas": 2, "target_load": 0}}, "target_load is above 0"),
        ({"autoscaling": 3}, "mapping"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError, match="^deployment: ") as caught:
        _deployed(**options)
    assert problem in str(caught.value)
