"""What tests of `POST /infer` send, and how they read its answers."""

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


def labels(answer: Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [prediction["label"] for prediction in answer.json()["predictions"][0]]


def values(answer: Response, index: int = 0) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()["outputs"][index]["data"]


def check_error(answer: Response, status: int, code: str) -> dict[str, Any]:
    body = answer.json()
    assert (answer.status_code, body["code"]) == (status, code), body
    assert list(body) == ["error", "code", "details"]
    details: dict[str, Any] = body["details"]
    return details
