"""Room that parties share: who keeps much loses the oldest of it, and nobody else anything."""

from services.rim.turns.fair_room import FairRoom


def test_who_keeps_much_takes_no_place_of_others() -> None:
    room = FairRoom[str, int](10)
    room.keep("few", 1, party="a", size=3)
    for number in range(20):
        room.keep(f"many-{number}", number, party="b", member=f"member-{number}")
        assert room.size <= 10
    assert room.find("few") == 1
    assert [room.find(f"many-{number}") for number in (0, 19)] == [None, 19]


def test_within_a_party_its_member_with_the_most_loses_the_one_that_was_used_longest_ago() -> None:
    room = FairRoom[str, int](4)
    room.keep("other", 0, party="a", member="calm")
    for number in range(3):
        room.keep(f"busy-{number}", number, party="a", member="busy")
    assert room.find("busy-0") == 0
    room.keep("busy-3", 3, party="a", member="busy")
    assert [room.find(name) for name in ("other", "busy-0", "busy-1", "busy-2", "busy-3")] == [0, 0, None, 2, 3]


def test_what_is_kept_under_a_known_name_takes_its_place_and_what_is_too_large_is_not_kept() -> None:
    room = FairRoom[str, int](4)
    room.keep("one", 1, party="a", size=3)
    room.keep("one", 2, party="b", size=2)
    assert (room.find("one"), room.size) == (2, 2)
    room.keep("large", 3, party="a", size=9)
    assert (room.find("large"), room.find("one")) == (None, 2)
    room.clear()
    assert (room.find("one"), room.size) == (None, 0)
