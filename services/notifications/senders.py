"""Sends one message to one receiver, once: by HTTP, or by `mails`. The address is never logged or returned: it may be a secret."""

import ipaddress
import socket
import time
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import msgspec
import structlog
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver
from yarl import URL

from services.alerts.messages import bodies
from services.alerts.store.deliveries import Claimed
from services.notifications.mails import Mails
from services.notifications.outcome import SENT, Outcome
from services.notifications.settings import NotificationsSettings
from services.rim.http.signing import headers, key_of
from services.rim.http.tls import connector
from shared.schemas.alerts.event import AlertEvent

log = structlog.get_logger(__name__)

#: Answers below 500 after which another attempt may do better: the receiver was too slow, or is too busy. All others, such as
#: redirects, say that the message or the address is wrong.
_MAY_PASS: Final = frozenset({408, 425, 429})
#: Translated to IPv4: the prefix of RFC 6052.
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
#: Unicast addresses of the internet (RFC 4291, 2.4). Others are of no receiver elsewhere: of a site (RFC 3879), of a network's own
#: translation to IPv4 (RFC 8215), or of IPv4 in a form that nobody uses.
_GLOBAL_UNICAST: Final = ipaddress.ip_network("2000::/3")
_JSON: Final = {"Content-Type": "application/json"}


class PrivateAddress(OSError):
    """The receiver is in a private network, and these are not allowed."""


class PublicResolver(AbstractResolver):
    """Resolves names as the system does, and refuses addresses that are not public."""

    def __init__(self) -> None:
        self._resolver = DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a name; raises `PrivateAddress` if any is not public."""
        found = await self._resolver.resolve(host, port, family)
        if not all(is_public(one["host"]) for one in found):
            raise PrivateAddress
        return found

    async def close(self) -> None:
        """Closes the resolver below."""
        await self._resolver.close()


def is_public(address: str) -> bool:
    """Whether an IP address can be that of a receiver elsewhere."""
    one = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(one, ipaddress.IPv6Address):
        teredo = one.teredo[1] if one.teredo else None
        translated = ipaddress.IPv4Address(int(one) & 0xFFFFFFFF) if one in _NAT64 else None
        # What is translated, or tunnelled, ends at the address within.
        inner = one.ipv4_mapped or one.sixtofour or teredo or translated
        if inner is not None:
            return is_public(str(inner))
        if one not in _GLOBAL_UNICAST:
            return False
    return one.is_global and not one.is_multicast


@dataclass(frozen=True)
class Senders:
    """Sends claimed messages; belongs to one event loop."""

    settings: NotificationsSettings
    session: aiohttp.ClientSession
    mails: Mails

    async def send(self, claimed: Claimed) -> Outcome:
        """One attempt."""
        try:
            event = None if claimed.event is None else msgspec.convert(claimed.event, AlertEvent)
            link = self._link(event)
            if claimed.kind == "email":
                return await self._mail(claimed, event, link)
            return await self._post(claimed, event, link)
        except KeyError as error:
            return Outcome(f"the receiver has no {error.args[0]}", may_pass=False)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            # A message that cannot be made, or an address that cannot be read, is dead by itself: others are not held up by it. The
            # text of the error may quote the address.
            log.error("message_not_made", message_id=claimed.id, kind=claimed.kind, error=type(error).__name__)
            return Outcome(f"it cannot be made or sent: {type(error).__name__}", may_pass=False)

    def _link(self, event: AlertEvent | None) -> str:
        base = self.settings.page_url.rstrip("/")
        return f"{base}/alerts" if event is None else f"{base}/incident?id={event.incident_id}"

    async def _post(self, claimed: Claimed, event: AlertEvent | None, link: str) -> Outcome:
        target, template, signed = claimed.target, claimed.template, dict(_JSON)
        address = target["url"] if claimed.kind != "pagerduty" else target.get("url") or bodies.PAGERDUTY_URL
        match claimed.kind:
            case "webhook":
                body = bodies.webhook(event, link, template, _now_ms())
                signed = headers(key_of(target["secret"]), claimed.id, _now_ms() // 1_000, body)
            case "slack":
                body = bodies.slack(event, link, template)
            case "teams":
                body = bodies.teams(event, link, template)
            case "pagerduty":
                key = target["routing_key"]
                body = bodies.pagerduty(event, link, template, routing_key=key, test_id=claimed.id)
            case _:
                return Outcome(f"there is no kind {claimed.kind}", may_pass=False)
        # A receiver of any kind knows a repeated message by this.
        signed["Idempotency-Key"] = claimed.id
        url = URL(address)
        if not self.settings.private_receivers and _is_private_literal(url.host):
            return Outcome("its address is in a private network", may_pass=False)
        try:
            async with self.session.post(url, data=body, headers=signed, allow_redirects=False) as answer:
                if answer.status // 100 == 2:
                    return SENT
                return Outcome(f"answered {answer.status}", may_pass=answer.status >= 500 or answer.status in _MAY_PASS)
        except aiohttp.InvalidURL:
            # As what `URL` cannot read: it will be no better later.
            raise
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if isinstance(error, PrivateAddress) or isinstance(getattr(error, "os_error", None), PrivateAddress):
                return Outcome("its address is in a private network", may_pass=False)
            return Outcome(f"no answer: {type(error).__name__}")

    async def _mail(self, claimed: Claimed, event: AlertEvent | None, link: str) -> Outcome:
        at_ms = event.at_ms if event else _now_ms()
        message = bodies.email(
            event,
            link,
            claimed.template,
            message_id=claimed.id,
            sender=self.settings.smtp_from,
            to=list(claimed.target["to"]),
            at_ms=at_ms,
        )
        return await self.mails.send(claimed.id, message, claimed.target["to"])


def session(settings: NotificationsSettings) -> aiohttp.ClientSession:
    """The client of all receivers, with a connection for each message that may be under way.

    Connections to one host have no limit of their own: receivers of several organisations may be there, and one that hangs would
    keep the others' messages waiting. Redirects are not followed: who made a receiver named one.
    """
    resolver: Any = None if settings.private_receivers else PublicResolver()
    return aiohttp.ClientSession(
        connector=connector(resolver=resolver, limit=settings.messages_max),
        timeout=aiohttp.ClientTimeout(total=settings.answer_ms_max / 1_000),
        cookie_jar=aiohttp.DummyCookieJar(),
    )


def _is_private_literal(host: str | None) -> bool:
    try:
        return host is None or not is_public(host)
    except ValueError:
        return False


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
