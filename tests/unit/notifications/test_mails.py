"""E-mails reach each address once, also where the mail server refuses some of them, and end by themselves."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage

import pytest

from services.notifications import mails
from services.notifications.mails import Mails, conversation_seconds_max
from services.notifications.outcome import SENT, Outcome
from services.notifications.settings import NotificationsSettings

TO = ["ok@x.example", "grey@x.example", "gone@x.example"]


class MailServer(socketserver.ThreadingTCPServer):
    """Answers as it is set, and keeps for whom each e-mail came."""

    daemon_threads = True

    def __init__(self) -> None:
        #: The answer to an address, or to a command.
        self.answers: dict[str, str] = {}
        self.asked: list[str] = []
        self.got: list[list[str]] = []
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self._say("220 ready")
        taken: list[str] = []
        while line := self.rfile.readline().decode().strip():
            command = line.partition(" ")[0].upper()
            named = line.partition("<")[2].partition(">")[0]
            if command == "RCPT":
                self.server.asked.append(named)
                answer = self.server.answers.get(named, "250 ok")
                taken += [named] if answer.startswith("250") else []
                self._say(answer)
            elif command == "DATA":
                self._say("354 go on")
                while self.rfile.readline() != b".\r\n":
                    pass
                self.server.got.append(taken)
                self._say("250 queued")
            else:
                self._say(self.server.answers.get(command, "250 ok"))

    def _say(self, answer: str) -> None:
        self.wfile.write(f"{answer}\r\n".encode())


@pytest.fixture
def server() -> Iterator[MailServer]:
    with MailServer() as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        try:
            yield made
        finally:
            made.shutdown()
            thread.join()


@contextmanager
def sender(server: MailServer) -> Iterator[Mails]:
    settings = NotificationsSettings(
        postgres_dsn="postgresql://x/y", smtp_host="127.0.0.1", smtp_port=server.server_address[1], smtp_security="none"
    )
    made = Mails(settings)
    try:
        yield made
    finally:
        made.close()


def mail() -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"] = "a@x.example", ", ".join(TO)
    message.set_content("text")
    return message


async def test_an_address_that_is_refused_for_now_gets_it_later_and_no_other_gets_it_twice(server: MailServer) -> None:
    """Only where all were refused another attempt was made; else the message was `delivered`."""
    server.answers = {TO[1]: "450 4.7.1 greylisted", TO[2]: "450 4.7.1 greylisted"}
    with sender(server) as one:
        assert await one.send("m", mail(), TO) == Outcome("2 of 3 recipients are refused: [450]", may_pass=True)
        del server.answers[TO[1]]
        assert (await one.send("m", mail(), TO)).problem == "1 of 3 recipients are refused: [450]"
        # Nobody has it of an attempt that ends otherwise, and nothing is forgotten.
        server.answers["MAIL"] = "451 later"
        assert await one.send("m", mail(), TO) == Outcome("the mail server answers 451", may_pass=True)
        server.answers = {}
        assert await one.send("m", mail(), TO) == SENT
        # Another e-mail goes to all.
        assert await one.send("n", mail(), TO) == SENT
    assert server.got == [[TO[0]], [TO[1]], [TO[2]], TO]


@pytest.mark.parametrize(
    ("answers", "may_pass"),
    [
        (["250 ok", "250 ok", "550 unknown"], False),
        (["550 unknown", "550 unknown", "550 unknown"], False),
        (["250 ok", "450 later", "550 unknown"], True),
        (["550 unknown", "421 closing", "250 ok"], True),
    ],
)
async def test_an_email_that_not_all_can_get_is_not_delivered(
    server: MailServer, answers: list[str], may_pass: bool
) -> None:
    server.answers = dict(zip(TO, answers, strict=True))
    with sender(server) as one:
        outcome = await one.send("m", mail(), TO)
    assert outcome.problem is not None
    assert "recipients are refused" in outcome.problem
    assert outcome.may_pass is may_pass


@pytest.mark.parametrize("farewell", ["421 timeout", "500 what?", "221 bye"])
async def test_what_is_answered_to_the_farewell_changes_nothing(server: MailServer, farewell: str) -> None:
    server.answers = {"QUIT": farewell}
    with sender(server) as one:
        assert await one.send("m", mail(), TO) == SENT
    assert server.got == [TO]


async def test_a_conversation_ends_at_its_deadline_though_every_answer_comes_in_time(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer had its own time: with 20 addresses the message was anybody's again while it was sent."""
    to = [f"{number}@x.example" for number in range(20)]
    clock = Clock()
    monkeypatch.setattr(mails, "time", clock)
    with sender(server) as one:
        assert await one.send("m", mail(), to) == Outcome("no mail server: TimeoutError", may_pass=True)
        settings = one._settings
    assert clock.now - 10 <= conversation_seconds_max(settings)
    assert 0 < len(server.asked) < len(to)
    assert server.got == []


class Clock:
    """Each look at it is some seconds later."""

    now = 0.0

    def monotonic(self) -> float:
        self.now += 2
        return self.now
