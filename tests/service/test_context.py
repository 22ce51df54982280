import pytest
from starlette.requests import Request
from starlette.types import Scope

from service.context import context_of, open_context


def scope(*headers: tuple[bytes, bytes]) -> Scope:
    return {"type": "http", "headers": list(headers)}


@pytest.mark.parametrize("given", ["a", "0123-abc", "~!@#$%", "x" * 128])
def test_id_of_the_client_is_taken(given: str) -> None:
    assert open_context(scope((b"x-request-id", given.encode()))).request_id == given


@pytest.mark.parametrize("given", [b"", b"x" * 129, b"a b", b"a\nb", b"\xe9", b"a\x7f"])
def test_id_that_would_spoil_a_log_is_replaced(given: bytes) -> None:
    made = open_context(scope((b"x-request-id", given))).request_id
    assert len(made) == 32
    assert made != given.decode("latin-1")


def test_each_request_without_an_id_gets_its_own() -> None:
    assert open_context(scope()).request_id != open_context(scope()).request_id


def test_context_travels_with_the_request() -> None:
    request_scope = scope()
    context = open_context(request_scope)
    assert context_of(Request(request_scope)) is context
    assert context.elapsed() >= 0


def test_request_without_context_is_a_fault_of_ours() -> None:
    with pytest.raises(KeyError):
        context_of(Request(scope()))
    with pytest.raises(TypeError, match="holds a str"):
        context_of(Request({**scope(), "kuiper.context": "x"}))
