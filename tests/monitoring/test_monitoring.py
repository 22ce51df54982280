"""The dashboard, its provisioning and the compose profile fit the server's metrics, and each other."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from httpx import ASGITransport, AsyncClient
from prometheus_client.parser import text_string_to_metric_families

from service.app import create_app
from service.config.settings import Settings
from tests.service.models import add_models

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
GRAFANA = ROOT / "monitoring/grafana"
DASHBOARD = GRAFANA / "dashboards/kuiper.json"
_METRIC = re.compile(r"\b(?:nv|kuiper|http|process|python)_[a-z_0-9]+")
_LABEL = re.compile(r"([a-z_]+)\s*=~?\s*\"")
_GROUPING = re.compile(r"\bby \(([^)]*)\)")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def series(tmp_path: Path) -> dict[str, set[str]]:
    """Return sample name -> labels, after a request that was answered and one that was not."""
    app = create_app(Settings(models=add_models(tmp_path), workers=1))
    client = AsyncClient(transport=ASGITransport(app), base_url="http://test")
    async with app.router.lifespan_context(app), client:
        response = await client.post("/infer?model=vector", json={"inputs": [{"data": [[1, 2, 3]]}]})
        assert response.status_code == 200
        assert (await client.post("/infer?model=vector", content=b"x")).status_code == 415
        text = (await client.get("/metrics")).text
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = orjson.loads(DASHBOARD.read_bytes())
    return loaded


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[str]:
    for panel in panels():
        yield from (target["expr"] for target in panel["targets"])
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return loaded


async def test_every_metric_of_the_dashboard_is_in_a_real_response(series: dict[str, set[str]]) -> None:
    used = {name for expression in expressions() for name in _METRIC.findall(expression)}
    labels = {"http_request_method", "http_route", "http_response_status_code"}
    assert len(used - labels) > 20
    assert used - labels - series.keys() == set()


async def test_every_label_of_the_dashboard_is_in_a_real_response(series: dict[str, set[str]]) -> None:
    known = set().union(*series.values()) | {"job", "instance"}  # these two are Prometheus' own
    for expression in expressions():
        grouped = {label.strip() for by in _GROUPING.findall(expression) for label in by.split(",")}
        assert grouped | set(_LABEL.findall(expression)) <= known, expression


def test_dashboard_shows_what_operators_look_for() -> None:
    shown = " ".join(expressions())
    for metric in (
        "nv_inference_request_success",
        "nv_inference_request_failure",
        "kuiper_request_seconds_bucket",
        "kuiper_queue_seconds_bucket",
        "nv_inference_pending_request_count",
        "kuiper_batch_size_sum",
        "kuiper_layer_seconds_sum",
        "process_resident_memory_bytes",
    ):
        assert metric in shown


def test_panels_have_ids_places_and_the_chosen_data_source() -> None:
    everything = dashboard()["panels"]
    ids = [panel["id"] for panel in everything]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in everything:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    variables = {variable["name"]: variable["type"] for variable in dashboard()["templating"]["list"]}
    assert variables["datasource"] == "datasource"
    for panel in panels():
        assert panel["title"]
        assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])
    for expression in expressions():
        assert set(re.findall(r"\$(?!__)(\w+)", expression)) <= variables.keys(), expression
        assert expression.count("(") == expression.count(")")
        assert expression.count("{") == expression.count("}")


def test_grafana_is_provisioned_from_what_compose_mounts() -> None:
    services = compose()["services"]
    mounts = {
        entry.split(":")[1]: ROOT / entry.split(":")[0]
        for service in services.values()
        for entry in service["volumes"]
        if entry.startswith("./")
    }
    for path in mounts.values():
        assert path.exists(), path
    (provider,) = yaml.safe_load((GRAFANA / "provisioning/dashboards/kuiper.yml").read_text())["providers"]
    assert mounts[provider["options"]["path"]] == DASHBOARD.parent
    home = Path(services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert mounts[str(home.parent)] / home.name == DASHBOARD
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())[
        "datasources"
    ]
    assert source["url"] == "http://prometheus:9090"


def test_prometheus_reads_the_server_of_compose() -> None:
    config = yaml.safe_load((ROOT / "monitoring/prometheus.yml").read_text())
    (job,) = config["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["kuiper:8000"]}]
    assert job["job_name"] == "kuiper"
    assert job.get("metrics_path", "/metrics") == "/metrics"


@pytest.mark.parametrize("name", ["kuiper", "prometheus", "grafana"])
def test_every_service_is_hardened_and_stays_on_this_machine(name: str) -> None:
    service = compose()["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    if name != "kuiper":
        assert service["profiles"] == ["monitoring"]
        assert re.fullmatch(r"[a-z]+/[a-z]+:v?\d+\.\d+\.\d+", service["image"])
