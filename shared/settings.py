"""Settings: read from the environment once, typed, refused with a message that says what is wrong and what is allowed.

A service's class names its variables: field `port` of a class with `PREFIX = "COLLECTOR_"` is `COLLECTOR_PORT`; what all
services share is `PLAYHEAD_...`. A variable with the service's prefix that nothing reads is refused too: it is a typo.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import pydantic
import pydantic_core

from shared.topics import PROFILES, Profile, ProfileName

_COMMON_PREFIX = "PLAYHEAD_"


class SettingsError(ValueError):
    """The environment does not describe settings this service can start with; the text says which variable and why."""


class Settings(pydantic.BaseModel):
    """What every service reads. Subclasses add their own fields under their `PREFIX`."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")
    PREFIX: ClassVar[str] = _COMMON_PREFIX

    kafka_bootstrap: str = pydantic.Field(
        default="127.0.0.1:9092", min_length=1, description="host:port, comma separated"
    )
    topics_profile: ProfileName = pydantic.Field(
        default="laptop", description="laptop or production, see shared/topics.py"
    )
    log_format: Literal["json", "console"] = pydantic.Field(
        default="json", description="json, or console to read in a terminal"
    )
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @property
    def profile(self) -> Profile:
        """The installation's size."""
        return PROFILES[self.topics_profile]

    @classmethod
    def variable(cls, field: str) -> str:
        """The name of the environment variable that holds `field`."""
        prefix = _COMMON_PREFIX if field in Settings.model_fields else cls.PREFIX
        return prefix + field.upper()

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> Self:
        """The settings in `environ`; raises `SettingsError` naming every variable that is wrong."""
        variables = {cls.variable(field): field for field in cls.model_fields}
        given = {field: environ[name] for name, field in variables.items() if name in environ}
        problems = [
            f"{name} is not a setting of this service; its settings are {', '.join(sorted(variables))}"
            for name in sorted(environ)
            if name.startswith(cls.PREFIX) and cls.PREFIX != _COMMON_PREFIX and name not in variables
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
        secret = info.annotation is not None and "Secret" in str(info.annotation)
        value = "(hidden)" if secret else repr(problem["input"])
        return f"{cls.variable(field)}={value}: {problem['msg']}{about}"
