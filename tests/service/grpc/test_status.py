"""Errors as clients of gRPC see them."""

import pytest

from service.errors import ServiceError
from service.grpc.status import details_of


@pytest.mark.parametrize(("letter", "limit"), [("a", 2000), ("\u00e4", 600)])
def test_messages_are_cut_beyond_their_limit(letter: str, limit: int) -> None:
    def shown(count: int) -> str:
        return details_of(ServiceError(400, "code", letter * count))

    assert shown(limit) == letter * limit
    assert shown(limit + 1) == letter * (limit - 3) + "..."
