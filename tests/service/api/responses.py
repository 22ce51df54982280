"""What tests of `POST /infer` send, and how they read its responses."""

from typing import Any

from httpx import Response
from PIL import Image

from tests.service.codec.payloads import encoded

VECTOR = {"inputs": [{"name": "0", "data": [[-1.0, 0.5, 2.0]]}]}


def bright(place: int, form: str = "PNG") -> bytes:
    """Return a picture of ten pixels in a row, one of them white."""
    picture = Image.new("L", (10, 1))
    picture.putpixel((place, 0), 255)
    return encoded(picture, form)


def labels(response: Response) -> list[str]:
    assert response.status_code == 200, response.text
    return [prediction["label"] for prediction in response.json()["predictions"][0]]


def values(response: Response, index: int = 0) -> Any:
    assert response.status_code == 200, response.text
    return response.json()["outputs"][index]["data"]


def check_error(response: Response, status: int, code: str) -> dict[str, Any]:
    body = response.json()
    assert (response.status_code, body["code"]) == (status, code), body
    assert list(body) == ["error", "code", "details"]
    details: dict[str, Any] = body["details"]
    return details
