"""gRPC channel options from the server's settings: limits and TLS."""

import grpc

from service.config.setting_file import SettingsError
from service.config.settings import Settings
from service.server.connections import SEND_TIMEOUT, max_connections

CONNECTION_SECONDS = 10.0
"""Age at which one of several processes has a connection's client connect again, to whatever process serves then. No
call is lost: gRPC varies the age by a tenth, and serves calls that arrive meanwhile."""
_HANDSHAKE_MS = 10_000


def channel_options(settings: Settings, *, is_shared: bool = False) -> list[tuple[str, int]]:
    """Return the options of the server's channels.

    Args:
        settings: the server's settings.
        is_shared: whether several processes listen on the port.
    """
    idle, timeout = (round(count * SEND_TIMEOUT * 1e3) for count in (1, 2))
    options = [
        ("grpc.max_receive_message_length", settings.max_body_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", int(is_shared)),
        ("grpc.max_allowed_incoming_connections", max_connections()),
        # by default gRPC resets calls at random, without a word, once a thousand have not been looked at
        ("grpc.server.max_pending_requests", max_connections()),
        ("grpc.server.max_pending_requests_hard_limit", 2 * max_connections()),
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
        # by default a client that vanished or does not read is dropped after two hours
        ("grpc.keepalive_time_ms", idle),
        ("grpc.keepalive_timeout_ms", timeout),
        ("grpc.http2.ping_timeout_ms", timeout),  # the response comes after all that is on its way already
        ("grpc.keepalive_permit_without_calls", 1),
    ]
    if is_shared:
        options.append(("grpc.max_connection_age_ms", round(CONNECTION_SECONDS * 1e3)))
    return options


def tls_credentials(settings: Settings) -> grpc.ServerCredentials | None:
    """Return what the server shows to clients, of the files that HTTPS uses; None where no certificate is set.

    Raises:
        SettingsError: the key has a password, which gRPC cannot be given.
    """
    if settings.ssl_certfile is None:
        return None
    if settings.ssl_keyfile_password is not None:
        raise SettingsError("grpc_port: gRPC takes no private key with a password; give it one without")
    chain = settings.ssl_certfile.read_bytes()
    key = (settings.ssl_keyfile or settings.ssl_certfile).read_bytes()
    authorities = None if settings.ssl_ca_certs is None else settings.ssl_ca_certs.read_bytes()
    return grpc.ssl_server_credentials(
        [(key, chain)], root_certificates=authorities, require_client_auth=authorities is not None
    )
