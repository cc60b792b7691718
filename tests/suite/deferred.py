"""Keeps an import of tests from costing what few of them need: `rfc3987_syntax` compiles its grammar at the first use."""

import importlib
import sys
from types import ModuleType
from typing import Final

_NAME: Final = "rfc3987_syntax"


class _DeferredSyntax(ModuleType):
    """Has what `jsonschema` imports for its formats `iri` and `iri-reference`. The module costs 1.5 CPU seconds at import."""

    @staticmethod
    def is_valid_syntax(term: str, value: str) -> bool:
        if isinstance(sys.modules.get(_NAME), _DeferredSyntax):
            del sys.modules[_NAME]
        return bool(importlib.import_module(_NAME).is_valid_syntax(term, value))


def defer() -> None:
    """Call it before anything imports `jsonschema`."""
    sys.modules.setdefault(_NAME, _DeferredSyntax(_NAME))
