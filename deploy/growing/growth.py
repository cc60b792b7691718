"""One growth: of whose topics, to how many partitions."""

import os
from dataclasses import dataclass

from services.processor.catalogue import APPLICATIONS
from services.processor.engine.application.application import Application
from services.processor.engine.division import CannotGrow
from services.processor.settings import ProcessorSettings
from services.rim.process.secrets import with_secrets


@dataclass(frozen=True)
class Growing:
    """One growth."""

    settings: ProcessorSettings
    application: Application
    partitions: int

    @property
    def names(self) -> list[str]:
        """The topics that grow together."""
        return [topic.name for topic in (*self.application.inputs, self.application.changelog)]


def growing_of(topic: str, partitions: int) -> Growing:
    """The growth of an input, by the settings of this process. Raises `CannotGrow`, `SettingsError`."""
    environ = with_secrets(ProcessorSettings, os.environ)
    settings = ProcessorSettings.load(environ)
    made = [make(environ) for make in APPLICATIONS.values()]
    applications = [one.under(settings.application_id(one.name)) for one in made]
    readers = [one for one in applications if topic in {of.name for of in one.inputs}]
    for application in readers:
        if application.growth is not None:
            return Growing(settings, application, partitions)
    if not readers:
        inputs = sorted({of.name for one in applications if one.growth is not None for of in one.inputs})
        raise CannotGrow(f"{topic} is no input of an application. What can grow: {', '.join(inputs)} (docs/growing.md)")
    why = "; ".join(f"{one.name}: {one.cannot_grow}" for one in readers)
    raise CannotGrow(
        f"{topic} cannot grow ({why}). Give its application more slots, up to one a partition (docs/growing.md)"
    )
