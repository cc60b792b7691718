"""Servers that let in only whom they know: a broker with TLS, SCRAM and rights, TLS before a Postgres; and their authority."""

import asyncio
import datetime as dt
import ipaddress
import ssl
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pydantic
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from psycopg.conninfo import conninfo_to_dict

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from shared.settings import Settings
from tests.integration.parts.brokers import format_data
from tests.integration.parts.installed import PROFILE, variables

#: In every password and token of these tests, so that each place that prints one is found.
MARK: Final = "s3cret"
ADMIN_TOKEN: Final = f"{MARK}-of-the-metrics"
_ANSWER_SECONDS_MAX: Final = 30.0
_START_SECONDS_MAX: Final = 30.0
#: What a Postgres client sends before anything else when it wants TLS: length and code (Postgres' documentation, 54.7).
_SSL_REQUEST: Final = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"


class Authority:
    """A certificate authority in `folder`, with a certificate for servers on 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        key, self._name = ec.generate_private_key(ec.SECP256R1()), _name("Playhead's tests")
        self._key = key
        self.ca_file = folder / "ca.pem"
        self.ca_file.write_bytes(_pem(self._certified(key, self._name, is_authority=True)))
        #: Key and certificate in one file, as Kafka takes them.
        self.server_file = folder / "server.pem"
        server_key = ec.generate_private_key(ec.SECP256R1())
        key_pem = server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self.server_file.write_bytes(key_pem + _pem(self._certified(server_key, _name("127.0.0.1"))))

    def _certified(
        self, key: ec.EllipticCurvePrivateKey, name: x509.Name, *, is_authority: bool = False
    ) -> x509.Certificate:
        now = dt.datetime.fromtimestamp(time.time(), dt.UTC)
        builder = (
            x509.CertificateBuilder(self._name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if not is_authority:
            address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
            builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def password_of(user: str) -> str:
    """A password with what has to be quoted somewhere."""
    return f'{user} "{MARK}" \\ {user}'


@dataclass(frozen=True)
class SecuredBroker:
    """A broker whose services come by TLS with a password. The test itself comes by another door, and may do everything."""

    broker: Broker
    #: What services are given as `bootstrap.servers`.
    bootstrap: str
    authority: Authority
    folder: Path

    def settings(self, user: str, **changed: object) -> Settings:
        """What a client of that user is given."""
        return Settings(
            **{  # type: ignore[arg-type]
                "kafka_bootstrap": self.bootstrap,
                "topics_profile": PROFILE,
                "kafka_security_protocol": "sasl_ssl",
                "kafka_ca_file": str(self.authority.ca_file),
                "kafka_username": user,
                "kafka_password": pydantic.SecretStr(password_of(user)),
                **changed,
            }
        )

    def environ(self, user: str) -> dict[str, str]:
        """The same as variables, the secrets in files."""
        password, token = self.folder / f"{user}.password", self.folder / "admin.token"
        password.write_text(password_of(user) + "\n")
        token.write_text(ADMIN_TOKEN)
        return {
            **variables(self.bootstrap),
            "PLAYHEAD_KAFKA_SECURITY_PROTOCOL": "sasl_ssl",
            "PLAYHEAD_KAFKA_CA_FILE": str(self.authority.ca_file),
            "PLAYHEAD_KAFKA_USERNAME": user,
            "PLAYHEAD_KAFKA_PASSWORD_FILE": str(password),
            "PLAYHEAD_ADMIN_TOKEN_FILE": str(token),
        }

    def make_users(self, names: list[str]) -> None:
        """Makes users with their passwords."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4_096)
        wanted = [UserScramCredentialUpsertion(name, info, password_of(name).encode()) for name in names]
        for made in admin.alter_user_scram_credentials(wanted, request_timeout=_ANSWER_SECONDS_MAX).values():
            made.result()


def secured_broker(folder: Path, authority: Authority) -> SecuredBroker:
    """A broker, not yet started, that grants nobody anything but those that come without TLS: the test, and itself."""
    port, tls_port, controller_port = free_port(), free_port(), free_port()
    properties = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{tls_port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{tls_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.server_file),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        "super.users": "User:ANONYMOUS",
    }
    format_data(folder / "broker")
    broker = Broker(folder / "broker", port=port, controller_port=controller_port, properties=properties)
    return SecuredBroker(broker, f"127.0.0.1:{tls_port}", authority, folder)


class TlsFront(threading.Thread):
    """TLS before a Postgres that has none built in: as `hostssl`, it refuses clients that do not begin with it."""

    def __init__(self, dsn: str, authority: Authority) -> None:
        super().__init__(name="tls-front", daemon=True)
        server = conninfo_to_dict(dsn)
        self._socket = f"{server['host']}/.s.PGSQL.{server['port']}"
        self._authority = authority
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(authority.server_file)
        self._port = free_port()
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._started = threading.Event()

    def dsn(self, user: str, database: str, *, ca_file: Path | None = None, sslmode: str = "verify-full") -> str:
        """How `user` comes to a database by TLS."""
        ca = ca_file or self._authority.ca_file
        return (
            f"postgresql://{user}:{MARK}-of-{user}@127.0.0.1:{self._port}/{database}?sslmode={sslmode}&sslrootcert={ca}"
        )

    def __enter__(self) -> "TlsFront":
        self.start()
        assert self._started.wait(_START_SECONDS_MAX)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self.join(_START_SECONDS_MAX)

    def run(self) -> None:
        """The thread's work."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with await asyncio.start_server(self._connection, "127.0.0.1", self._port):
            self._started.set()
            await self._stopped.wait()

    async def _connection(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            if await client.readexactly(len(_SSL_REQUEST)) != _SSL_REQUEST:
                return
            to_client.write(b"S")
            await to_client.start_tls(self._tls)
            server, to_server = await asyncio.open_unix_connection(self._socket)
            try:
                # The one that ends first ends both.
                ways = [asyncio.create_task(_pass_on(*way)) for way in ((client, to_server), (server, to_client))]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
            finally:
                to_server.close()
        except (OSError, EOFError):
            # A client that does not trust the certificate goes away in the middle of the handshake.
            pass
        finally:
            to_client.close()


async def _pass_on(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65_536):
            to.write(data)
            await to.drain()
    except OSError:
        # The other end is gone.
        return
