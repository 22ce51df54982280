"""HTTPS: uvicorn's settings for certificates, and a check of the files before the server starts."""

import ssl
from pathlib import Path
from typing import Any

from service.config.setting_file import SettingsError
from service.config.settings import Settings

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""What TLS 1.2 may use, in OpenSSL's words: forward secrecy and authenticated encryption, no AES-CBC. The cipher suites
of TLS 1.3 are all of this kind."""


def tls_options(settings: Settings) -> dict[str, Any]:
    """Return uvicorn's settings for HTTPS; none where no certificate is set."""
    if settings.ssl_certfile is None:
        return {}
    required = settings.ssl_ca_certs is not None
    return {
        "ssl_ciphers": _CIPHERS,
        "ssl_certfile": settings.ssl_certfile,
        "ssl_keyfile": settings.ssl_keyfile,
        "ssl_keyfile_password": _password(settings),
        "ssl_ca_certs": str(settings.ssl_ca_certs) if required else None,
        "ssl_cert_reqs": ssl.CERT_REQUIRED if required else ssl.CERT_NONE,
    }


def check_tls(settings: Settings) -> None:
    """Check that certificate and key can be read and belong together.

    Raises:
        SettingsError: they cannot, or do not, or one is set that means nothing without a certificate.
    """
    names = ("ssl_keyfile", "ssl_keyfile_password", "ssl_ca_certs")
    if settings.ssl_certfile is None:
        for name in names:
            if getattr(settings, name) is not None:
                raise SettingsError(f"{name}: requires ssl_certfile")
        return
    for name in ("ssl_certfile", "ssl_keyfile", "ssl_ca_certs"):
        _check_readable(name, getattr(settings, name))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load_chain(context, settings)
    if settings.ssl_ca_certs is not None:
        try:
            context.load_verify_locations(settings.ssl_ca_certs)
        except ssl.SSLError as error:
            raise SettingsError(f"ssl_ca_certs: {settings.ssl_ca_certs} holds no PEM certificates") from error


def _load_chain(context: ssl.SSLContext, settings: Settings) -> None:
    certificate, key = settings.ssl_certfile, settings.ssl_keyfile or settings.ssl_certfile
    # a key that needs a password and has none would make OpenSSL ask for it at the terminal
    password = _password(settings) or ""
    try:
        context.load_cert_chain(str(certificate), key, lambda: password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            reason = f"ssl_keyfile: the key in {key} is not that of the certificate in {certificate}"
        elif b"ENCRYPTED" in Path(str(key)).read_bytes():
            what = "is not that of the key" if password else "is needed by the key"
            reason = f"ssl_keyfile_password: {what} in {key}"
        else:
            reason = f"ssl_certfile: {certificate} and {key} are not a PEM certificate and its private key"
        raise SettingsError(reason) from error


def _check_readable(name: str, path: Path | None) -> None:
    try:
        if path is not None:
            path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{name}: cannot read {path}: {error.strerror}") from error


def _password(settings: Settings) -> str | None:
    secret = settings.ssl_keyfile_password
    return None if secret is None else secret.get_secret_value()
