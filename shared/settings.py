"""Settings: read once from the environment and typed. An error message says what is wrong and what is allowed.

A service's class names its variables: field `port` of a class with `PREFIX = "COLLECTOR_"` is `COLLECTOR_PORT`; what all services
share is `PLAYHEAD_...`. A variable with one of these prefixes that nothing reads is refused too: it is a typo. docs/security.md has
the settings of secure connections.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final, Literal, Self

import pydantic
import pydantic_core

from shared.topics import PROFILES, Profile, ProfileName, Topic

_COMMON_PREFIX = "PLAYHEAD_"
#: Variables with the common prefix that are no settings of a service. Images have the first; the others are of commands that build,
#: run and test this project, whose services inherit them.
NO_SETTINGS: Final = frozenset(
    {
        "PLAYHEAD_SERVICE",
        "PLAYHEAD_VERSION",
        "PLAYHEAD_COMPILE",
        "PLAYHEAD_IMAGE_PYTHON",
        "PLAYHEAD_IMAGE_DEBIAN_SNAPSHOT",
        "PLAYHEAD_LOCAL_PORTS",
        "PLAYHEAD_HOST_FILE",
        "PLAYHEAD_CPU_SECONDS_DIR",
    }
)
#: What Kubernetes gives a pod of each Service in its namespace, such as PLAYHEAD_KAFKA_BOOTSTRAP_SERVICE_HOST of Strimzi:
#: https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_SERVICE_LINK: Final = re.compile(
    r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)


class SettingsError(ValueError):
    """The environment does not describe settings this service can start with; the text says which variable and why."""


class SettingsGroup(pydantic.BaseModel):
    """Variables under one `PREFIX`, each declared once: type, default, bounds, unit (in its name) and meaning.

    The object that `load` returns is what the code works with: there is no second struct with the same fields.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")
    PREFIX: ClassVar[str] = ""

    @classmethod
    def variable(cls, field: str) -> str:
        """The name of the environment variable that holds `field`."""
        is_common = issubclass(cls, Settings) and field in Settings.model_fields
        return (_COMMON_PREFIX if is_common else cls.PREFIX) + field.upper()

    @classmethod
    def secret_variables(cls) -> list[str]:
        """The names of the variables whose values are secrets."""
        return [cls.variable(field) for field in cls.model_fields if cls._is_secret(field)]

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> Self:
        """The settings in `environ`; raises `SettingsError` naming every variable that is wrong."""
        variables = {cls.variable(field): field for field in cls.model_fields}
        given = {field: environ[name] for name, field in variables.items() if name in environ}
        problems = [
            f"{name} is not a setting of this service; its settings are {', '.join(sorted(variables))}"
            for name in sorted(environ)
            if name not in variables and cls._is_meant(name)
        ]
        try:
            settings = cls.model_validate(given)
        except pydantic.ValidationError as error:
            problems += [cls._explain(problem) for problem in error.errors()]
            raise SettingsError("; ".join(problems)) from None
        if problems:
            raise SettingsError("; ".join(problems))
        return settings

    @classmethod
    def _is_meant(cls, name: str) -> bool:
        """Whether a variable can only be meant as a setting of this class, by its prefix."""
        if not issubclass(cls, Settings) or not name.startswith(_COMMON_PREFIX):
            return name.startswith(cls.PREFIX)
        return name not in NO_SETTINGS and _SERVICE_LINK.fullmatch(name) is None

    @classmethod
    def _explain(cls, problem: pydantic_core.ErrorDetails) -> str:
        field = str(problem["loc"][0]) if problem["loc"] else ""
        if field not in cls.model_fields:
            return problem["msg"]
        info = cls.model_fields[field]
        about = f" ({info.description})" if info.description else ""
        # Its input is all the others' values, secrets among them.
        if problem["type"] == "missing":
            return f"{cls.variable(field)} must be set{about}"
        # A secret's value never reaches a message.
        value = "(hidden)" if cls._is_secret(field) else repr(problem["input"])
        return f"{cls.variable(field)}={value}: {problem['msg']}{about}"

    @classmethod
    def _is_secret(cls, field: str) -> bool:
        return "Secret" in str(cls.model_fields[field].annotation)


class Settings(SettingsGroup):
    """What every service reads. Subclasses add their own fields under their `PREFIX`."""

    PREFIX: ClassVar[str] = _COMMON_PREFIX

    kafka_bootstrap: str = pydantic.Field(
        default="127.0.0.1:9092", min_length=1, description="host:port, comma separated"
    )
    topics_profile: ProfileName = pydantic.Field(
        default="laptop", description="small, laptop, trial or production, see shared/topics.py"
    )
    beacon_partitions: int | None = pydantic.Field(
        default=None,
        ge=1,
        le=4096,
        description="partitions of topic beacons after `python -m deploy.topics grow`; without it as many as the profile creates",
    )
    application_ids: str = pydantic.Field(
        default="",
        pattern=r"^([a-z_]+=[a-z0-9_-]{1,60}( [a-z_]+=[a-z0-9_-]{1,60})*)?$",
        description="processor applications whose state has moved to an id of its own, as video_views=video_views-b; see state.md",
    )
    kafka_security_protocol: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] = pydantic.Field(
        default="plaintext", description="plaintext, ssl, sasl_plaintext or sasl_ssl"
    )
    kafka_ca_file: str = pydantic.Field(
        default="", description="PEM file of the authorities that the brokers' certificates are checked with"
    )
    kafka_certificate_file: str = pydantic.Field(
        default="", description="PEM file of this service's own certificate, where the brokers ask for one"
    )
    kafka_key_file: str = pydantic.Field(default="", description="PEM file of that certificate's key (PKCS #8)")
    kafka_key_password: pydantic.SecretStr | None = pydantic.Field(default=None, description="password of the key file")
    kafka_sasl_mechanism: Literal["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"] = pydantic.Field(
        default="SCRAM-SHA-512", description="SCRAM-SHA-512, SCRAM-SHA-256 or PLAIN"
    )
    kafka_username: str = pydantic.Field(default="", description="user name of this service at Kafka")
    kafka_password: pydantic.SecretStr | None = pydantic.Field(
        default=None, min_length=1, description="password of PLAYHEAD_KAFKA_USERNAME"
    )
    admin_token: pydantic.SecretStr | None = pydantic.Field(
        default=None,
        min_length=16,
        description="bearer token of the admin endpoint; without it metrics are open, and in profile production closed",
    )
    log_format: Literal["json", "console"] = pydantic.Field(
        default="json", description="json, or console to read in a terminal"
    )
    log_level: Literal["debug", "info", "warning", "error"] = pydantic.Field(
        default="info", description="least severe level that is logged"
    )
    trace_share: float = pydantic.Field(
        default=0.0, ge=0, le=1, description="share of requests that are traced, as a fraction; 0: none"
    )
    trace_url: str = pydantic.Field(
        default="",
        pattern=r"(https?://[^\s@]+)?",
        description="address to which spans go, as OTLP over HTTP: http://host/v1/traces",
    )

    @pydantic.model_validator(mode="after")
    def _security_fits_together(self) -> Self:
        protocol = self.kafka_security_protocol
        has_sasl, has_tls = protocol.startswith("sasl"), protocol.endswith("ssl")
        login = (self.kafka_username, self.kafka_password)
        if has_sasl and not all(login):
            raise ValueError(f"PLAYHEAD_KAFKA_USERNAME and PLAYHEAD_KAFKA_PASSWORD must be set for {protocol}")
        if not has_sasl and any(login):
            raise ValueError(f"PLAYHEAD_KAFKA_USERNAME and PLAYHEAD_KAFKA_PASSWORD mean nothing for {protocol}")
        files = (self.kafka_ca_file, self.kafka_certificate_file, self.kafka_key_file)
        if not has_tls and any(files):
            raise ValueError(f"PLAYHEAD_KAFKA_CA_FILE, _CERTIFICATE_FILE and _KEY_FILE mean nothing for {protocol}")
        if bool(self.kafka_certificate_file) != bool(self.kafka_key_file):
            raise ValueError("PLAYHEAD_KAFKA_CERTIFICATE_FILE and PLAYHEAD_KAFKA_KEY_FILE go together")
        return self

    @pydantic.model_validator(mode="after")
    def _traces_have_a_place(self) -> Self:
        if self.trace_share and not self.trace_url:
            raise ValueError("PLAYHEAD_TRACE_SHARE wants PLAYHEAD_TRACE_URL")
        return self

    @pydantic.model_validator(mode="after")
    def _partitions_are_multiplied(self) -> Self:
        first = PROFILES[self.topics_profile].view_partitions
        if self.beacon_partitions is not None and self.beacon_partitions % first:
            raise ValueError(
                f"PLAYHEAD_BEACON_PARTITIONS must be a multiple of {first}, with which the profile creates them"
            )
        return self

    @pydantic.model_validator(mode="after")
    def _ids_are_of_their_applications(self) -> Self:
        for one in self.application_ids.split():
            name, _, application_id = one.partition("=")
            if not application_id.startswith(f"{name}-"):
                raise ValueError(f"PLAYHEAD_APPLICATION_IDS: the id of {name} must begin with {name}-")
        return self

    def application_id(self, name: str) -> str:
        """What names an application's group, transactions, changelog and stores here: its name, unless its state has moved."""
        ids = dict(one.split("=") for one in self.application_ids.split())
        return ids.get(name, name)

    def named(self, topic: Topic) -> Topic:
        """A declared topic as it is named here: the changelog of an application by its id."""
        name, dot, kind = topic.name.partition(".")
        if (dot, kind) != (".", "changelog") or self.application_id(name) == name:
            return topic
        return replace(topic, name=f"{self.application_id(name)}.changelog")

    @property
    def certificate_files(self) -> list[Path]:
        """PEM files of certificates that connections rest on."""
        return [Path(name) for name in (self.kafka_ca_file, self.kafka_certificate_file) if name]

    @property
    def profile(self) -> Profile:
        """The installation's size."""
        profile = PROFILES[self.topics_profile]
        return profile if self.beacon_partitions is None else replace(profile, beacon_partitions=self.beacon_partitions)
