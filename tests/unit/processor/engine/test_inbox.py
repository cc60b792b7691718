"""The inbox: which record is next, what holds it back, and that the order is a replay's."""

import dataclasses
import random

from services.processor.engine.inbox import Inbox
from services.processor.engine.record import Record
from tests.unit.processor.engine.counting import APPLICATION as COUNTING
from tests.unit.processor.engine.joining import APPLICATION, LEFT, RIGHT

WAIT_SECONDS = APPLICATION.input_wait_ms_max / 1000


def record(topic: str, offset: int, event_ms: int) -> Record:
    return Record(topic, 0, offset, 10_000 + offset, b"k", b"%d x" % event_ms)


def left(offset: int, event_ms: int) -> Record:
    return record(LEFT.name, offset, event_ms)


def right(offset: int, event_ms: int) -> Record:
    return record(RIGHT.name, offset, event_ms)


def take_ready(inbox: Inbox, now: float = 0.0) -> list[Record]:
    ready = list(inbox.ready(now))
    inbox.remove_folded(len(ready))
    return ready


def test_the_lowest_time_comes_first_and_offsets_keep_their_order() -> None:
    inbox = Inbox(APPLICATION)
    inbox.add(LEFT.name, [left(0, 30), left(1, 10), left(2, 50)], 3, 0.0)
    inbox.add(RIGHT.name, [right(0, 20), right(1, 40)], 2, 0.0)
    inbox.confirm(LEFT.name, 3, 0.0)
    inbox.confirm(RIGHT.name, 2, 0.0)
    assert take_ready(inbox) == [right(0, 20), left(0, 30), left(1, 10), right(1, 40), left(2, 50)]


def test_of_equal_times_the_input_declared_first_comes_first() -> None:
    inbox = Inbox(APPLICATION)
    inbox.add(RIGHT.name, [right(0, 20)], 1, 0.0)
    inbox.add(LEFT.name, [left(0, 20)], 1, 0.0)
    assert take_ready(inbox) == [left(0, 20)]


def test_append_time_decides_where_the_application_runs_on_it() -> None:
    inbox = Inbox(dataclasses.replace(APPLICATION, event_time=None))
    inbox.add(LEFT.name, [left(5, 1)], 6, 0.0)
    inbox.add(RIGHT.name, [right(4, 9), right(6, 0)], 7, 0.0)
    assert take_ready(inbox) == [right(4, 9), left(5, 1)]


def test_an_empty_input_holds_the_others_back_until_its_end_is_confirmed_since() -> None:
    inbox = Inbox(APPLICATION)
    inbox.confirm(RIGHT.name, 0, 4.9)
    inbox.add(LEFT.name, [left(0, 30)], 1, 5.0)
    assert take_ready(inbox, 5.0) == []
    inbox.confirm(RIGHT.name, 1, 5.1)
    assert take_ready(inbox, 5.2) == []
    inbox.confirm(RIGHT.name, 0, 5.2)
    assert take_ready(inbox, 5.3) == [left(0, 30)]
    assert inbox.unwaited == 0


def test_a_record_read_while_others_wait_goes_by_its_time() -> None:
    inbox = Inbox(APPLICATION)
    inbox.add(LEFT.name, [left(0, 30)], 1, 5.0)
    assert take_ready(inbox, 5.0) == []
    inbox.add(RIGHT.name, [right(0, 20)], 1, 5.1)
    assert take_ready(inbox, 5.1) == [right(0, 20)]


def test_a_wait_ends_and_is_reported() -> None:
    inbox = Inbox(APPLICATION)
    inbox.add(LEFT.name, [left(0, 30)], 1, 5.0)
    assert take_ready(inbox, 5.0) == []
    assert take_ready(inbox, 4.9 + WAIT_SECONDS) == []
    assert take_ready(inbox, 5.0 + WAIT_SECONDS) == [left(0, 30)]
    assert inbox.unwaited == 1


def test_an_undecodable_record_goes_as_if_it_were_as_old_as_the_one_before_it() -> None:
    inbox = Inbox(APPLICATION)
    garbage = Record(LEFT.name, 0, 1, 0, b"k", b"garbage")
    inbox.add(LEFT.name, [left(0, 10), garbage, left(2, 30)], 3, 0.0)
    inbox.add(RIGHT.name, [right(0, 20), right(1, 40)], 2, 0.0)
    assert take_ready(inbox) == [left(0, 10), garbage, right(0, 20), left(2, 30)]


def test_what_was_not_taken_comes_again() -> None:
    inbox = Inbox(COUNTING)
    (topic,) = (each.name for each in COUNTING.inputs)
    inbox.add(topic, [record(topic, 0, 0), record(topic, 1, 0)], 2, 0.0)
    assert len(inbox.ready(0.0)) == 2
    inbox.remove_folded(1)
    assert [each.offset for each in inbox.ready(0.0)] == [1]


def test_it_is_caught_up_when_every_end_is_confirmed_and_nothing_waits() -> None:
    inbox = Inbox(APPLICATION)
    inbox.start({LEFT.name: 3, RIGHT.name: 0})
    assert inbox.caught_up_at is None
    inbox.confirm(LEFT.name, 3, 7.0)
    inbox.confirm(RIGHT.name, 0, 6.0)
    assert inbox.caught_up_at == 6.0
    inbox.confirm(RIGHT.name, 1, 8.0)
    assert inbox.caught_up_at is None
    inbox.add(RIGHT.name, [right(0, 20)], 1, 7.0)
    assert inbox.caught_up_at is None
    ready = inbox.ready(8.0)
    assert inbox.caught_up_at is None
    inbox.remove_folded(len(ready))
    assert inbox.caught_up_at == 7.0


def test_a_position_reported_again_does_not_go_back() -> None:
    inbox = Inbox(APPLICATION)
    inbox.start({LEFT.name: 3, RIGHT.name: 0})
    inbox.confirm(LEFT.name, 3, 7.0)
    inbox.confirm(RIGHT.name, 0, 6.0)
    inbox.add(LEFT.name, [], 2, 8.0)
    assert inbox.caught_up_at == 6.0


def test_waiting_records_and_bytes_are_counted_by_input() -> None:
    inbox = Inbox(APPLICATION)
    inbox.add(LEFT.name, [left(0, 30), left(1, 31)], 2, 0.0)
    assert (inbox.waiting_records(LEFT.name), inbox.waiting_bytes(LEFT.name)) == (2, 8)
    inbox.add(RIGHT.name, [right(0, 30)], 1, 0.0)
    take_ready(inbox)
    assert (inbox.waiting_records(LEFT.name), inbox.waiting_bytes(LEFT.name)) == (1, 4)


def test_the_order_is_the_same_however_the_inputs_are_split() -> None:
    random_ = random.Random(4)
    inputs = {
        LEFT.name: [left(number, random_.randrange(1_000)) for number in range(200)],
        RIGHT.name: [right(number, random_.randrange(1_000)) for number in range(150)],
    }
    orders = []
    for _ in range(5):
        inbox = Inbox(APPLICATION)
        out: list[Record] = []
        read = dict.fromkeys(inputs, 0)
        now = 0.0
        while len(out) < 350:
            # So small steps that no wait runs out.
            now += 0.001
            topic = random_.choice(list(inputs))
            to = min(len(inputs[topic]), read[topic] + random_.choice([0, 1, 7, 50]))
            inbox.add(topic, inputs[topic][read[topic] : to], to, now)
            read[topic] = to
            inbox.confirm(topic, len(inputs[topic]), now)
            if random_.random() < 0.7:
                out += take_ready(inbox, now)
        orders.append(out)
    assert all(order == orders[0] for order in orders)
    assert inbox.unwaited == 0
