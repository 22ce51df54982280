"""Who is taken for one client."""

import pytest

from service.context import address_of


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::"),
        ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::%eth0"),
        ("::1", "::"),
        ("unix:socket", "unix:socket"),
        ("", ""),
    ],
)
def test_address_or_network(address: str, client: str) -> None:
    assert address_of((address, 50000)) == client


@pytest.mark.parametrize("peer", [None, ()])
def test_who_is_not_known(peer: tuple[str, ...] | None) -> None:
    assert address_of(peer) == ""
