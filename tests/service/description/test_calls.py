"""Every operation of the API's description has an example that works as it is."""

from pathlib import Path
from shutil import copytree
from typing import Any

from fastapi.testclient import TestClient

from service.app import create_app
from service.config.settings import Settings

ROOT = Path(__file__).parents[3]
WITHOUT = {
    "/v1/embeddings": "no model here makes vectors of texts",
    "/traces/{request_id}": "the page fills in the last request",
    "/models/{name}/quantization": "no model here is quantized",
    "/models/{name}/traffic": "no model here has versions that share its requests",
}


def request_of(path: str, operation: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of the request that the examples of an operation make."""
    examples = {
        (each["in"], each["name"]): each["example"]
        for each in operation.get("parameters", ())
        if "example" in each
    }
    for (place, name), value in examples.items():
        if place == "path":
            path = path.replace(f"{{{name}}}", value)
    query = {name: value for (place, name), value in examples.items() if place == "query"}
    return {"url": path, "params": query}


def test_every_operation_has_an_example_that_works(tmp_path: Path) -> None:
    copytree(ROOT / "models" / "digits", tmp_path / "digits")
    tried = []
    with TestClient(
        create_app(Settings(models=tmp_path, model_control="explicit")), base_url="http://localhost"
    ) as client:
        while client.get("/readyz").status_code != 200:
            pass
        paths = client.get("/openapi.json").json()["paths"]
        for path in sorted(paths.keys() - WITHOUT.keys(), key=lambda path: path.endswith("unload")):
            for method, operation in paths[path].items():
                request = request_of(path, operation)
                assert "{" not in request["url"], path
                for media_type, described in operation.get("requestBody", {}).get("content", {}).items():
                    example: dict[str, Any] = next(iter(described.get("examples", {}).values()), {})
                    if "value" in example and media_type == "application/json":
                        request["json"] = example["value"]
                assert ("json" in request) == (method == "post"), path
                response = client.request(method, **request)
                assert response.status_code == 200, (path, response.text)
                tried.append(path)
    assert len(tried) > 40
