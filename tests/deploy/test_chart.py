"""What the chart sets is what the image and the server have; `make test-cluster` renders it."""

import json
import re
from pathlib import Path

import yaml

from service.api import ROUTERS
from service.config.settings import Settings, describe_settings
from service.lifecycle import LAST_SECONDS
from tests.docs.generated.chart import CHART, OWNED, SCHEMA, leaves

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
HELPERS = (CHART / "templates" / "_helpers.tpl").read_text(encoding="utf-8")
DEPLOYMENT = (CHART / "templates" / "deployment.yaml").read_text(encoding="utf-8")
CANCELS_SECONDS = 2
"""After which uvicorn cancels what is left when the drain and `LAST_SECONDS` are over."""


def found(pattern: str, text: str) -> list[str]:
    matches = re.findall(pattern, text)
    assert matches, pattern
    return matches


def test_variables_are_settings() -> None:
    known = {doc.variable for doc in describe_settings()} | {"KUIPER_CACHE"}
    set_by_chart = {f"KUIPER_{name}" for name in found(r'(?:\$set|dict|"[\d.]+") "([A-Z_]+)"', HELPERS)}
    assert set_by_chart - known == set()
    # what the chart has no value for is not among its settings either: a file it does not mount, a secret in the open
    assert {f"KUIPER_{name.upper()}" for name in OWNED} - set_by_chart == {
        "KUIPER_CONFIG",
        "KUIPER_API_KEYS",
        "KUIPER_ADMIN_KEYS",
        "KUIPER_SSL_KEYFILE_PASSWORD",
    }


def test_values_give_settings_that_the_server_takes() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    settings = Settings(**values["settings"])
    assert values["shutdownMarginSeconds"] > LAST_SECONDS + CANCELS_SECONDS
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))["properties"]
    assert schema["shutdownMarginSeconds"]["minimum"] > LAST_SECONDS + CANCELS_SECONDS
    (default,) = found(r"default (\d+) .Values.settings.drain_seconds", HELPERS)
    assert settings.store_cache_bytes * 1.5 < int(values["cache"]["sizeLimit"].removesuffix("Gi")) << 30
    assert float(default) == Settings.model_fields["drain_seconds"].default == settings.drain_seconds


def test_chart_fits_the_image() -> None:
    (uid,) = found(r"--uid (\d+)", DOCKERFILE)
    assert found(r"(?m)^USER (\d+)$", DOCKERFILE) == [uid]
    assert found(r"runAsUser: (\d+)", DEPLOYMENT) == [uid]
    (port,) = found(r"EXPOSE (\d+)", DOCKERFILE)
    assert found(r"name: http\n +containerPort: (\d+)", DEPLOYMENT) == [port]
    assert found(r'"PORT" "(\d+)"', HELPERS) == [port]
    assert f"COPY deploy/healthcheck.py {found(r'[ ,](/[a-z/]+healthcheck.py)', HELPERS)[0]}" in DOCKERFILE
    (models,) = found(r"KUIPER_MODELS=(\S+)", DOCKERFILE)
    assert f'(default "{models}" .Values.models.url)' in HELPERS
    assert f"mountPath: {models}\n" in HELPERS
    (cache,) = found(r"KUIPER_CACHE=(\S+)", DOCKERFILE)
    assert f"mountPath: {cache}\n" in HELPERS
    assert 'ENTRYPOINT ["kuiper"]' in DOCKERFILE
    assert "args: [serve]" in DEPLOYMENT


def test_probes_ask_what_responses_without_a_key() -> None:
    paths = {route.path for router in ROUTERS for route in router.routes if hasattr(route, "path")}
    assert set(found(r'"path" "(/\w+)"', DEPLOYMENT)) == {"/livez", "/readyz"} <= paths


def test_metrics_of_the_scaler_exist() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    scaler = (CHART / "templates" / "scaledobject.yaml").read_text(encoding="utf-8")
    for metric in found(r"sum\((\w+)", scaler):
        assert f"- `{metric}` (gauge" in page


def test_each_value_is_described_where_it_stands() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    described = {".".join(path) for path, _ in leaves(schema)}
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    for name, value in values.items():
        inner = [f"{name}.{key}" for key in value] if isinstance(value, dict) and value else [name]
        assert name in described or all(
            one in described or any(other.startswith(f"{one}.") for other in described) for one in inner
        ), name


def test_version_of_the_chart_is_that_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{chart["appVersion"]}"' in project
