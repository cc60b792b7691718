"""What requests hold of one process."""

from services.collector.admission.held import InFlight, Slots


def test_bytes_in_flight_are_bounded() -> None:
    in_flight = InFlight(100)
    assert in_flight.take_bytes(60)
    assert not in_flight.take_bytes(41)
    assert in_flight.take_bytes(40)
    in_flight.give_back(60)
    assert in_flight.take_bytes(60)
    assert in_flight.bytes == 100


def test_each_party_has_its_part_of_the_room() -> None:
    in_flight = InFlight(100, 0.5)
    assert in_flight.take_bytes(50, "a")
    assert not in_flight.take_bytes(1, "a")
    assert not in_flight.take_bytes(1, "a", "k")
    assert in_flight.take_bytes(25, "b", "k")
    assert in_flight.take_bytes(25, "c", "k")
    assert not in_flight.take_bytes(1, "d", "k")
    for party in ("b", "c"):
        in_flight.give_back(25, party, "k")
    in_flight.give_back(50, "a")
    assert (in_flight.bytes, in_flight._by_party) == (0, {})


def test_no_address_takes_all_the_room_of_a_key() -> None:
    """Keys are no secret: a client that knows one could keep its customer out from one address."""
    in_flight = InFlight(1_000, 0.25)
    while in_flight.take_bytes(10, "attacker", "k"):
        pass
    assert in_flight.take_bytes(100, "b", "k")
    assert in_flight.take_bytes(100, "attacker", "other")


def test_slots_are_of_each_party() -> None:
    slots = Slots()
    assert slots.take_slots({"a": 1, "k": 2})
    assert not slots.take_slots({"a": 1})
    assert slots.take_slots({"b": 1, "k": 2})
    assert not slots.take_slots({"c": 1, "k": 2})
    slots.give_back(["a", "k"])
    assert slots.take_slots({"c": 1, "k": 2})
