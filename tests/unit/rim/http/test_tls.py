"""TLS: nobody speaks a version before 1.2 with a service, on either side, and every client and listener comes from one place."""

import re
import ssl
from pathlib import Path

import pydantic
import pytest

from services.rim.database.postgres import Dsn
from services.rim.http.tls import client_context, connector, server_context
from services.rim.kafka import security
from shared.settings import Settings
from tests.integration.parts.secured import Authority

# The old versions are what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")

SERVICES = Path(__file__).parents[4] / "services"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def old(context: ssl.SSLContext) -> ssl.SSLContext:
    """A party that knows TLS 1.1 and no later version."""
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    return context


def shaken(client: ssl.SSLContext, server: ssl.SSLContext) -> str | None:
    """The version that the two agree on, in memory. Raises `ssl.SSLError` where they do not."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    other = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(8):
        for party in (one, other):
            try:
                party.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return one.version()


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.ca_file))


def served(authority: Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority.server_file, authority.server_file)
    return context


def at_most_1_2(context: ssl.SSLContext) -> ssl.SSLContext:
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def test_old_clients_and_old_servers_agree_with_each_other_and_with_no_service(authority: Authority) -> None:
    server = server_context(str(authority.server_file), str(authority.server_file))
    client = client_context(str(authority.ca_file))
    # That the version is what the two below differ in.
    assert shaken(old(trusting(authority)), old(served(authority))) == "TLSv1.1"
    with pytest.raises(ssl.SSLError):
        shaken(old(trusting(authority)), server)
    with pytest.raises(ssl.SSLError):
        shaken(client, old(served(authority)))
    assert shaken(client, server) == "TLSv1.3"
    assert shaken(at_most_1_2(trusting(authority)), server) == "TLSv1.2"


def test_a_server_that_another_authority_vouches_for_is_nobody(authority: Authority, tmp_path: Path) -> None:
    server = server_context(str(authority.server_file), str(authority.server_file))
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(client_context(str(Authority(tmp_path).ca_file)), server)
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(client_context(), server)


def test_kafkas_clients_know_no_suite_of_an_older_version(authority: Authority) -> None:
    settings = Settings(kafka_security_protocol="ssl")
    suites = security.for_librdkafka(settings)["ssl.cipher.suites"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers(suites)
    assert {one["protocol"] for one in context.get_ciphers()} == {"TLSv1.2", "TLSv1.3"}
    # As librdkafka does it: no least version, the suites alone.
    loose = trusting(authority)
    loose.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    loose.set_ciphers(f"{suites}:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError):
        shaken(loose, old(served(authority)))
    assert security.for_java(settings)["ssl.enabled.protocols"] == "TLSv1.2,TLSv1.3"
    assert security.for_librdkafka(Settings()) == security.for_java(Settings()) == {}


@pytest.mark.parametrize(
    ("parameter", "is_taken"),
    [
        ("ssl_min_protocol_version=TLSv1", False),
        ("ssl_min_protocol_version=TLSv1.1", False),
        ("ssl_max_protocol_version=TLSv1.1", False),
        ("ssl_min_protocol_version=TLSv1.2", True),
        ("ssl_min_protocol_version=TLSv1.3", True),
        ("sslmode=verify-full", True),
    ],
)
def test_a_connection_string_of_an_older_version_is_refused(parameter: str, is_taken: bool) -> None:
    adapter = pydantic.TypeAdapter(Dsn)
    dsn = f"postgresql://u:p@db/x?{parameter}"
    if is_taken:
        assert adapter.validate_python(dsn).get_secret_value() == dsn
        return
    with pytest.raises(pydantic.ValidationError, match=r"TLSv1\.2 at least"):
        adapter.validate_python(dsn)


async def test_connections_of_http_clients_have_the_one_context(authority: Authority) -> None:
    async with connector(str(authority.ca_file)) as made:
        assert made._ssl is client_context(str(authority.ca_file))


def test_every_client_and_listener_has_its_context_from_one_place() -> None:
    tls = SERVICES / "rim/http/tls.py"
    for path in SERVICES.rglob("*.py"):
        text = path.read_text()
        if path != tls:
            assert not re.search(r"ssl\.(create_default_context|SSLContext)\(|TCPConnector\(", text), path
        for session in re.findall(r"ClientSession\(\s*(\w*)", text):
            assert session == "connector", path
