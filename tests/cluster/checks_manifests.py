"""The manifests of KServe and KubeRay against their own packages and Kubernetes' schemas, unknown fields refused."""

import re
from pathlib import Path
from typing import Any

import jsonschema
import kserve.models
import kubernetes.client.models
import kubernetes_validate
import pytest
import yaml
from ray.serve.schema import ServeDeploySchema

from service.ray import environment
from tests.cluster.ray_service_schema import RAY_SERVICE

DEPLOY = Path(__file__).parents[2] / "deploy"
RUNTIME = yaml.safe_load((DEPLOY / "kserve" / "serving-runtime.yaml").read_text())
SERVICE = yaml.safe_load((DEPLOY / "kserve" / "inference-service.yaml").read_text())
RAY = yaml.safe_load((DEPLOY / "ray" / "ray-service.yaml").read_text())
_SCALARS: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "bool": bool,
    "float": (int, float),
    "object": object,
}


def check_model(value: Any, kind: str, path: str = "") -> None:
    """See that a value is of a type that kserve's or Kubernetes' client names.

    Raises:
        ValueError: it is not, or has a field that the type has not.
    """
    if listed := re.fullmatch(r"[Ll]ist\[(.*)\]", kind):
        for index, entry in enumerate(value):
            check_model(entry, listed[1], f"{path}[{index}]")
    elif mapped := re.fullmatch(r"[Dd]ict[\[(]str, (.*)[\])]", kind):
        for name, entry in value.items():
            check_model(entry, mapped[1], f"{path}.{name}")
    elif (scalar := _SCALARS.get(kind)) is not None:
        if not isinstance(value, scalar):
            raise ValueError(f"{path}: {value!r} is no {kind}")
    elif (model := _model(kind)) is not None:
        _check_fields(value, model, path)


def _model(kind: str) -> Any:
    if kind in ("IntOrString", "ResourceQuantity"):  # text or number
        return None
    return getattr(kserve.models, kind, None) or getattr(kubernetes.client.models, kind)


def _check_fields(value: dict[str, Any], model: Any, path: str) -> None:
    names = {json_name: name for name, json_name in model.attribute_map.items()}
    for json_name, entry in value.items():
        if json_name not in names:
            raise ValueError(f"{path}.{json_name}: there is no such field of {model.__name__}")
        check_model(entry, model.openapi_types[names[json_name]], f"{path}.{json_name}")


def check_pod(spec: dict[str, Any]) -> None:
    """See that Kubernetes takes the specification of a pod."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
    kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)


def test_serving_runtime_is_one() -> None:
    assert (RUNTIME["apiVersion"], RUNTIME["kind"]) == ("serving.kserve.io/v1alpha1", "ServingRuntime")
    check_model(RUNTIME, "V1alpha1ServingRuntime")
    spec = RUNTIME["spec"]
    check_pod({"containers": spec["containers"], "volumes": spec["volumes"]})


def test_inference_service_is_one() -> None:
    assert (SERVICE["apiVersion"], SERVICE["kind"]) == ("serving.kserve.io/v1beta1", "InferenceService")
    check_model(SERVICE, "V1beta1InferenceService")
    assert SERVICE["spec"]["predictor"]["model"]["runtime"] == RUNTIME["metadata"]["name"]


@pytest.mark.parametrize("place", [("spec",), ("spec", "predictor"), ("spec", "predictor", "model")])
def test_unknown_fields_are_found(place: tuple[str, ...]) -> None:
    wrong = yaml.safe_load(yaml.safe_dump(SERVICE))
    inner = wrong
    for name in place:
        inner = inner[name]
    inner["nonsense"] = 1
    with pytest.raises(ValueError, match="nonsense"):
        check_model(wrong, "V1beta1InferenceService")


def test_ray_service_is_one() -> None:
    jsonschema.validate(RAY, RAY_SERVICE)
    groups = [
        RAY["spec"]["rayClusterConfig"]["headGroupSpec"],
        *RAY["spec"]["rayClusterConfig"]["workerGroupSpecs"],
    ]
    for group in groups:
        check_pod(group["template"]["spec"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**RAY, "spec": {**RAY["spec"], "nonsense": 1}}, RAY_SERVICE)


def test_applications_are_those_that_ray_serve_takes() -> None:
    described = ServeDeploySchema.model_validate(yaml.safe_load(RAY["spec"]["serveConfigV2"]))
    (application,) = described.applications
    module, _, name = str(application.import_path).partition(":")
    assert (module, name) == ("service.ray", "build")


def test_nodes_have_the_variables_that_ray_needs() -> None:
    cluster = RAY["spec"]["rayClusterConfig"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        (container,) = group["template"]["spec"]["containers"]
        variables = {entry["name"]: entry["value"] for entry in container["env"]}
        assert environment().items() <= variables.items()
