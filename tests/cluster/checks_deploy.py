"""The chart as Helm renders it, for every value that it has, and its objects against the schemas of their kinds."""

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml
from cloudcoil.models.keda.v1alpha1 import ScaledObject
from cloudcoil.models.prometheus_operator.v1 import ServiceMonitor

from tests.deploy.cases import CASES, Case
from tests.deploy.refused import REFUSED

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "kuiper-serve"
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
VERSIONS = ("1.29", "1.33", kubernetes_validate.latest_version())
"""Of Kubernetes: the oldest that the chart takes, the first with volumes of images, and the newest."""
CUSTOM = {"ScaledObject": ScaledObject, "ServiceMonitor": ServiceMonitor}
"""Kinds of operators, by the models that were generated from the operators' own definitions."""


@pytest.fixture(scope="module")
def chart() -> Iterator[helm_python.Chart]:
    with helm_python.Chart.load(CHART) as loaded:
        yield loaded


def render(chart: helm_python.Chart, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return kind -> object."""
    texts = chart.render(dict(values), name="demo", namespace="prod")
    objects = [
        found
        for path, text in texts.items()
        if path.endswith(".yaml")
        for found in yaml.safe_load_all(text)
        if found
    ]
    return {found["kind"]: found for found in objects}


def at(place: Any, path: str) -> Any:
    """Return what is at a path, None for nothing."""
    names = path.split(".") if path else []
    while names and place is not None:
        name = names.pop(0)
        if isinstance(place, list):
            if name.lstrip("-").isdigit():
                place = place[int(name)] if int(name) < len(place) else None
            else:
                place = next((entry.get("value") for entry in place if entry["name"] == name), None)
        else:
            place = place.get(name)
    return place


def check_kind(thing: dict[str, Any], versions: tuple[str, ...] = VERSIONS) -> None:
    """See that an object is what its kind takes, unknown fields refused."""
    if (model := CUSTOM.get(thing["kind"])) is None:
        for version in versions:
            kubernetes_validate.validate(thing, version, strict=True)
    else:
        read = model.model_validate(thing)
        assert read.model_dump(mode="json", by_alias=True, exclude_unset=True) == thing


@pytest.mark.parametrize("case", CASES, ids=lambda case: json.dumps(case.values))
def test_a_value_changes_what_it_says_and_renders_valid_objects(chart: helm_python.Chart, case: Case) -> None:
    before, after = render(chart, {}), render(chart, case.values)
    for path, expected in case.changed.items():
        assert at(after.get(case.kind), path) == expected, path
    if expected := {path: value for path, value in case.changed.items() if value is not None}:
        assert any(at(before.get(case.kind), path) != value for path, value in expected.items())
    takes_images = ("1.33", kubernetes_validate.latest_version())
    has_image = bool(case.values.get("models", {}).get("image"))
    for thing in after.values():
        check_kind(thing, takes_images if has_image else VERSIONS)


@pytest.mark.parametrize(("values", "message"), REFUSED, ids=json.dumps)
def test_a_wrong_value_is_refused_in_words(
    chart: helm_python.Chart, values: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(helm_python.HelmError, match=message):
        render(chart, values)


def test_every_setting_is_rendered(chart: helm_python.Chart) -> None:
    settings = {
        name: _other(name, entry) for name, entry in SCHEMA["properties"]["settings"]["properties"].items()
    }
    values = {"replicas": 1, "settings": settings, "networkPolicy": {"enabled": False}}
    variables = {
        entry["name"]: entry["value"]
        for entry in at(render(chart, values)["Deployment"], "spec.template.spec.containers.0.env")
    }
    for name, value in settings.items():
        text = (
            ",".join(value)
            if isinstance(value, list)
            else value
            if isinstance(value, str)
            else json.dumps(value)
        )
        assert variables[f"KUIPER_{name.upper()}"] == text


def _other(name: str, entry: Mapping[str, Any]) -> Any:
    """Return a value that a setting may have."""
    if "enum" in entry:
        return entry["enum"][-1]
    kinds = {"string": "text", "boolean": True, "array": [entry.get("items", {}).get("enum", ["text"])[0]]}
    return kinds.get(entry["type"], max(entry.get("minimum", 1), 1))


def test_every_value_has_a_case() -> None:
    used = {path for case in CASES for path in _paths(case.values)}
    documented = {path for path in _documented(SCHEMA) if path[0] not in ("global", "settings")}
    assert {path for path in documented if not any(one[: len(path)] == path for one in used)} == set()


def _paths(values: Mapping[str, Any], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in values.items():
        yield (*before, name)
        if isinstance(value, Mapping):
            yield from _paths(value, (*before, name))


def _documented(schema: Mapping[str, Any], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, entry in schema.get("properties", {}).items():
        if "properties" in entry:
            yield from _documented(entry, (*before, name))
        else:
            yield (*before, name)


def test_schema_describes_the_default_of_each_value() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    for path in _documented(SCHEMA):
        if path[0] not in ("global", "settings"):
            place = defaults
            for name in path:
                assert name in place, path
                place = place[name]


def test_chart_passes_lint() -> None:
    report = helm_python.lint(CHART, strict=True)
    assert report["errors"] == []
    assert {message["error"] for message in report["messages"]} <= {"icon is recommended"}


def test_pods_give_nothing_away(chart: helm_python.Chart) -> None:
    pod = render(chart, {})["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_checks_of_kinds_find_mistakes(chart: helm_python.Chart) -> None:
    objects = render(chart, {"autoscaling": {"enabled": True}, "serviceMonitor": {"enabled": True}})
    assert CUSTOM.keys() < objects.keys()
    for thing in objects.values():
        wrong = copy.deepcopy(thing)
        wrong["nonsense"] = 1
        with pytest.raises((kubernetes_validate.ValidationError, AssertionError, ValueError)):
            check_kind(wrong)
