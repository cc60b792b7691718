"""Kafka's security settings: what fits together, and how each client is configured."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from services.rim.http.tls import SUITES
from services.rim.kafka.connection import client_config
from services.rim.kafka.security import for_java, for_librdkafka
from shared.settings import Settings, SettingsError

SCRAM = {
    "PLAYHEAD_KAFKA_SECURITY_PROTOCOL": "sasl_ssl",
    "PLAYHEAD_KAFKA_USERNAME": "collector",
    "PLAYHEAD_KAFKA_PASSWORD": 'p"ss\\word',
}


def test_plain_connections_need_no_settings() -> None:
    settings = Settings.load({})
    assert (for_librdkafka(settings), for_java(settings)) == ({}, {})


def test_a_password_over_tls_is_given_to_each_client_under_its_names() -> None:
    settings = Settings.load(SCRAM | {"PLAYHEAD_KAFKA_CA_FILE": "/etc/ca.pem"})
    assert for_librdkafka(settings) == {
        "security.protocol": "sasl_ssl",
        "ssl.cipher.suites": SUITES,
        "ssl.ca.location": "/etc/ca.pem",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "collector",
        "sasl.password": 'p"ss\\word',
    }
    assert for_java(settings) == {
        "security.protocol": "SASL_SSL",
        "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/etc/ca.pem",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required"
            ' username="collector" password="p\\"ss\\\\word";'
        ),
    }


def test_every_client_of_confluent_kafka_gets_them() -> None:
    config = client_config(Settings.load(SCRAM), "test")
    assert config["sasl.password"] == 'p"ss\\word'
    # The client knows every name; it connects to no broker before its first use.
    Producer({**config, "bootstrap.servers": ""})


def test_a_certificate_of_ones_own_is_given_too(tmp_path: Path) -> None:
    certificate, key = tmp_path / "me.pem", tmp_path / "me.key"
    certificate.write_text("certificate")
    key.write_text("key")
    settings = Settings.load(
        {
            "PLAYHEAD_KAFKA_SECURITY_PROTOCOL": "ssl",
            "PLAYHEAD_KAFKA_CERTIFICATE_FILE": str(certificate),
            "PLAYHEAD_KAFKA_KEY_FILE": str(key),
            "PLAYHEAD_KAFKA_KEY_PASSWORD": "open sesame",
        }
    )
    assert for_librdkafka(settings) == {
        "security.protocol": "ssl",
        "ssl.cipher.suites": SUITES,
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(key),
        "ssl.key.password": "open sesame",
    }
    assert for_java(settings) == {
        "security.protocol": "SSL",
        "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "certificate",
        "ssl.keystore.key": "key",
        "ssl.key.password": "open sesame",
    }


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        (SCRAM | {"PLAYHEAD_KAFKA_SECURITY_PROTOCOL": "tls"}, "plaintext, ssl, sasl_plaintext or sasl_ssl"),
        (SCRAM | {"PLAYHEAD_KAFKA_USERNAME": ""}, "PLAYHEAD_KAFKA_USERNAME and PLAYHEAD_KAFKA_PASSWORD must be set"),
        (SCRAM | {"PLAYHEAD_KAFKA_SECURITY_PROTOCOL": "ssl"}, "mean nothing for ssl"),
        (SCRAM | {"PLAYHEAD_KAFKA_SECURITY_PROTOCOL": "plaintext"}, "mean nothing for plaintext"),
        ({"PLAYHEAD_KAFKA_CA_FILE": "ca.pem"}, "mean nothing for plaintext"),
        (
            {"PLAYHEAD_KAFKA_SECURITY_PROTOCOL": "ssl", "PLAYHEAD_KAFKA_KEY_FILE": "me.key"},
            "PLAYHEAD_KAFKA_CERTIFICATE_FILE and PLAYHEAD_KAFKA_KEY_FILE go together",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused_without_the_password(environ: dict[str, str], why: str) -> None:
    with pytest.raises(SettingsError, match=why) as refused:
        Settings.load(environ)
    assert "word" not in str(refused.value).replace("PASSWORD", "")
