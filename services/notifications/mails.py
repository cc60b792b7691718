"""Sends e-mails by SMTP: each conversation within one deadline, and to each address until the server takes it."""

import asyncio
import smtplib
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from email.message import EmailMessage
from typing import Any, Final

from services.notifications.outcome import SENT, Outcome
from services.notifications.settings import NotificationsSettings
from services.rim.http.tls import client_context

#: A conversation takes as long as so many answers at the most: connecting, a login, up to 20 addresses, and the e-mail.
_ANSWERS_MAX: Final = 5
#: E-mails of which it is remembered who has them: those of the last hours, where no addresses are refused for long.
_PARTLY_MAX: Final = 10_000


def conversation_seconds_max(settings: NotificationsSettings) -> float:
    """The time for a whole conversation; each answer has `answer_ms_max` of it."""
    return _ANSWERS_MAX * settings.answer_ms_max / 1_000


class Mails:
    """Sends e-mails; belongs to one event loop."""

    def __init__(self, settings: NotificationsSettings) -> None:
        self._settings = settings
        # As many as messages may be under way: none waits for another's thread while its lease runs. Threads of their own: a mail
        # server that hangs keeps nothing else waiting that is done on threads.
        self._threads = ThreadPoolExecutor(settings.messages_max, thread_name_prefix="mail")
        #: By id of an e-mail, the addresses that have it while the server refuses others. Another process sends to all again.
        self._have: dict[str, frozenset[str]] = {}

    async def send(self, message_id: str, message: EmailMessage, to: Sequence[str]) -> Outcome:
        """One attempt, at the addresses that do not have it yet. It is sent once all have it."""
        if not self._settings.smtp_host:
            return Outcome("NOTIFICATIONS_SMTP_HOST is not set", may_pass=False)
        have = self._have.pop(message_id, frozenset())
        left = [one for one in to if one not in have]
        try:
            # The library blocks; each e-mail has a connection of its own, so that no state is shared.
            loop = asyncio.get_running_loop()
            refused = await loop.run_in_executor(self._threads, _converse, self._settings, message, left)
        except smtplib.SMTPRecipientsRefused as error:
            # All are, or the server ended the conversation at one of them: nobody has it.
            self._remember(message_id, have)
            return _refused({one: code for one, (code, _) in error.recipients.items()}, to)
        except smtplib.SMTPResponseException as error:
            self._remember(message_id, have)
            return Outcome(f"the mail server answers {error.smtp_code}", may_pass=error.smtp_code < 500)
        except (smtplib.SMTPException, OSError) as error:
            self._remember(message_id, have)
            return Outcome(f"no mail server: {type(error).__name__}")
        if not refused:
            return SENT
        self._remember(message_id, have.union(left) - refused.keys())
        return _refused(refused, to)

    def close(self) -> None:
        """Waits for no conversation."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _remember(self, message_id: str, have: frozenset[str]) -> None:
        if have:
            self._have[message_id] = have
        while len(self._have) > _PARTLY_MAX:
            del self._have[next(iter(self._have))]


def _refused(refused: Mapping[str, int], to: Sequence[str]) -> Outcome:
    codes = sorted(set(refused.values()))
    return Outcome(f"{len(refused)} of {len(to)} recipients are refused: {codes}", may_pass=codes[0] < 500)


class _Conversation(smtplib.SMTP):
    """Ends at a deadline: each wait is for `seconds`, and for no longer than what is left."""

    def __init__(self, host: str, port: int, *, deadline: float, seconds: float, **more: Any) -> None:
        self._deadline = deadline
        self._seconds = seconds
        super().__init__(host, port, timeout=seconds, **more)

    def send(self, s: Any) -> None:
        """As `smtplib.SMTP.send`. Raises `TimeoutError` after the deadline."""
        self._limit()
        super().send(s)

    def getreply(self) -> tuple[int, bytes]:
        """As `smtplib.SMTP.getreply`. Raises `TimeoutError` after the deadline."""
        self._limit()
        return super().getreply()

    def _limit(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if self.sock is not None:
            self.sock.settimeout(min(left, self._seconds))


class _TlsConversation(_Conversation, smtplib.SMTP_SSL):
    """The same, encrypted from its beginning."""


def _converse(settings: NotificationsSettings, message: EmailMessage, to: list[str]) -> dict[str, int]:
    """The addresses that are refused, each with the server's code; all others have the e-mail. Raises as `smtplib` does."""
    context = client_context()
    kind, more = (_TlsConversation, {"context": context}) if settings.smtp_security == "tls" else (_Conversation, {})
    client = kind(
        settings.smtp_host,
        settings.smtp_port,
        deadline=time.monotonic() + conversation_seconds_max(settings),
        seconds=settings.answer_ms_max / 1_000,
        **more,
    )
    try:
        if settings.smtp_security == "starttls":
            client.starttls(context=context)
        if settings.smtp_user and settings.smtp_password is not None:
            client.login(settings.smtp_user, settings.smtp_password.get_secret_value())
        refused = client.send_message(message, to_addrs=to)
        # The server has taken it: what it answers to the farewell changes nothing.
        with suppress(smtplib.SMTPException, OSError):
            client.quit()
    finally:
        client.close()
    return {one: code for one, (code, _) in refused.items()}
