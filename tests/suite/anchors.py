"""Validators of a schema find its anchors once.

OpenAPI's own schema refers by anchor at each level. `referencing` looks through the whole schema for each such reference, because
it keeps what it found for those alone that come from it: more than half of the CPU time that a document takes.
"""

from referencing import Registry, Resource
from referencing._core import Resolver

_rooted = Registry.resolver_with_root


def _searched(registry: "Registry[object]", resource: "Resource[object]") -> "Resolver[object]":
    """As `Registry.resolver_with_root`, which adds the resource without a look at what is in it."""
    made = _rooted(registry, resource)
    return Resolver(base_uri=made._base_uri, registry=made._registry.crawl(), previous=made._previous)


def find_once() -> None:
    """Call it before a validator is made."""
    Registry.resolver_with_root = _searched  # type: ignore[method-assign]
