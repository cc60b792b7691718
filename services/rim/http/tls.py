"""TLS of every client and every listener: version 1.2 at least, from one function each.

Kafka's clients have no setting of a least version, so they use `SUITES`, which older versions do not have
(services/rim/kafka/security.py). The least version of libpq is 1.2; services/rim/database/postgres.py refuses a lower one.
"""

import ssl
from functools import cache
from typing import Any, Final

import aiohttp

LEAST: Final = ssl.TLSVersion.TLSv1_2
#: Authenticated encryption with forward secrecy, in OpenSSL's words: TLS 1.2 is the first version that has it (RFC 5288). The
#: suites of TLS 1.3 are a list of their own, and all of this kind.
SUITES: Final = "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM"


@cache
def client_context(ca_file: str = "") -> ssl.SSLContext:
    """For connections whose server proves its name to the authorities in a PEM file; without one, to those of the system.

    Raises `OSError` when the file cannot be read, and `ssl.SSLError` when it holds no certificate.
    """
    context = ssl.create_default_context(cafile=ca_file or None)
    return _at_least(context)


def server_context(certificate_file: str, key_file: str) -> ssl.SSLContext:
    """For a listener with the chain and the key of these PEM files. Raises `OSError`; `ssl.SSLError` is one."""
    context = _at_least(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))
    context.load_cert_chain(certificate_file, key_file)
    return context


def connector(ca_file: str = "", **options: Any) -> aiohttp.TCPConnector:
    """The connections of an HTTP client; raises as `client_context`."""
    return aiohttp.TCPConnector(ssl=client_context(ca_file), **options)


def _at_least(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = LEAST
    context.set_ciphers(SUITES)
    return context
