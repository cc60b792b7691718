"""What requests hold of one process."""

from services.collector.admission.held import InFlight


def test_bytes_in_flight_are_bounded() -> None:
    in_flight = InFlight(100)
    assert in_flight.take_bytes(60)
    assert not in_flight.take_bytes(41)
    assert in_flight.take_bytes(40)
    in_flight.give_back(60)
    assert in_flight.take_bytes(60)
    assert in_flight.bytes == 100
