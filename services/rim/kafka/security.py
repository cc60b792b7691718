"""The security settings of a Kafka connection, under each client's names: librdkafka's, and the Java client's (Spark).

Names: librdkafka's CONFIGURATION.md; Kafka's documentation, "Consumer Configs" (PEM stores are KIP-651).
"""

from pathlib import Path
from typing import Final

from services.rim.http.tls import SUITES
from shared.settings import Settings

#: Of the Java client, which knows versions.
_JAVA_VERSIONS: Final = "TLSv1.2,TLSv1.3"


def for_librdkafka(settings: Settings) -> dict[str, str]:
    """Security of a client of confluent-kafka; nothing where connections are plain."""
    if settings.kafka_security_protocol == "plaintext":
        return {}
    config: dict[str, str] = {"security.protocol": settings.kafka_security_protocol}
    if settings.kafka_security_protocol.endswith("ssl"):
        config["ssl.cipher.suites"] = SUITES
    if settings.kafka_ca_file:
        config["ssl.ca.location"] = settings.kafka_ca_file
    if settings.kafka_certificate_file:
        config["ssl.certificate.location"] = settings.kafka_certificate_file
        config["ssl.key.location"] = settings.kafka_key_file
        if settings.kafka_key_password is not None:
            config["ssl.key.password"] = settings.kafka_key_password.get_secret_value()
    if settings.kafka_password is not None:
        config["sasl.mechanism"] = settings.kafka_sasl_mechanism
        config["sasl.username"] = settings.kafka_username
        config["sasl.password"] = settings.kafka_password.get_secret_value()
    return config


def for_java(settings: Settings) -> dict[str, str]:
    """The same of a Java client. Raises `OSError` when the certificate or its key cannot be read."""
    if settings.kafka_security_protocol == "plaintext":
        return {}
    config = {"security.protocol": settings.kafka_security_protocol.upper()}
    if settings.kafka_security_protocol.endswith("ssl"):
        config["ssl.enabled.protocols"] = _JAVA_VERSIONS
    if settings.kafka_ca_file:
        config |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": settings.kafka_ca_file}
    if settings.kafka_certificate_file:
        config |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": Path(settings.kafka_certificate_file).read_text(),
            "ssl.keystore.key": Path(settings.kafka_key_file).read_text(),
        }
        if settings.kafka_key_password is not None:
            config["ssl.key.password"] = settings.kafka_key_password.get_secret_value()
    if settings.kafka_password is not None:
        module = "plain.PlainLoginModule" if settings.kafka_sasl_mechanism == "PLAIN" else "scram.ScramLoginModule"
        config["sasl.mechanism"] = settings.kafka_sasl_mechanism
        config["sasl.jaas.config"] = (
            f"org.apache.kafka.common.security.{module} required"
            f" username={_quoted(settings.kafka_username)}"
            f" password={_quoted(settings.kafka_password.get_secret_value())};"
        )
    return config


def _quoted(text: str) -> str:
    """As a JAAS configuration quotes a value: a backslash before a quotation mark and before a backslash."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
