"""The incident of a run: it hits its cohort from its moment on, changes no other story, and the truth says where players are and
what they watch on."""

from dataclasses import replace

import pytest

from loadtest.clients import cmcd, mux
from loadtest.clients.devices import COMPUTER, DEVICES
from loadtest.clients.headers import headers_of
from loadtest.expected.truth import row
from loadtest.incident import NETWORKS, incident_of
from loadtest.story import GAVE_UP_CODE, TAIL_MS, Story, story_of
from services.collector.http.user_agents import AGENTS_PARSED_BY_ADDRESS_MAX, Agents
from services.collector.intake.sender.client import NO_AGENT

SECONDS = 60
INCIDENT = incident_of(SECONDS)
CALM = [story_of(7, number, SECONDS) for number in range(600)]
STORIES = [story_of(7, number, SECONDS, INCIDENT) for number in range(600)]
HIT = [story for story in STORIES if story.player.stalls_from_ms is not None]


def kinds(story: Story) -> list[str]:
    return [moment.kind for moment in story.moments]


def test_who_is_hit_stalls_until_the_player_gives_up() -> None:
    assert len(HIT) > 20
    for story in HIT:
        assert INCIDENT.hits(story.player)
        assert "error" in kinds(story)
        assert story.ends_ms > INCIDENT.from_ms
        assert {moment.code for moment in story.moments if moment.kind == "error"} == {GAVE_UP_CODE}
    assert GAVE_UP_CODE not in {moment.code for story in CALM for moment in story.moments}
    stalls = sum(kind == "rebufferstart" for story in HIT for kind in kinds(story))
    assert stalls > len(HIT)


def test_nobody_elses_story_changes() -> None:
    for story, calm in zip(STORIES, CALM, strict=True):
        if story.player.stalls_from_ms is None:
            assert (story.arrives_ms, story.moments) == (calm.arrives_ms, calm.moments)
            assert replace(story.player, network=None, host=0, device=None, version=None) == calm.player


def test_a_story_that_is_hit_ends_in_time_and_keeps_its_moments_apart() -> None:
    for story in HIT:
        times = [moment.at_ms for moment in story.moments]
        assert times == sorted(set(times))
        assert story.ends_ms <= SECONDS * 1_000 - TAIL_MS


def test_players_say_their_address_and_version_and_the_truth_has_their_network() -> None:
    networks = {network.asn: network for network, _ in NETWORKS}
    for story in STORIES[:100]:
        player = story.player
        assert player.network is not None
        assert headers_of(player)["X-Forwarded-For"].startswith(player.network.addresses + ".")
        truth = row(story, mux.beacons(story, 0, "localhost")) if player.source == "mux" else None
        if truth is not None:
            assert (truth["asn"], truth["player_version"]) == (player.network.asn, player.version)
            assert truth["country"] == networks[truth["asn"]].country
    assert {story.player.version for story in STORIES if story.player.source == "cmcd"} == {None}


@pytest.mark.thorough
def test_without_an_incident_players_have_neither_network_nor_device() -> None:
    assert "X-Forwarded-For" not in headers_of(CALM[0].player)
    assert {headers_of(story.player)["User-Agent"] for story in CALM} == {COMPUTER.user_agent}
    started = (row(story, mux.beacons(story, 0, "localhost")) for story in CALM if story.player.source == "mux")
    assert all({"asn", "device"}.isdisjoint(truth) for truth in started if truth is not None)


def test_players_send_the_user_agent_of_their_device_and_the_truth_has_what_a_collector_reads_in_it() -> None:
    agents = Agents()
    for story in STORIES[:100]:
        player = story.player
        assert player.device is not None
        sent = headers_of(player)["User-Agent"]
        read = agents.known(sent)
        if read is NO_AGENT:
            read = agents.parse(sent, player.view_id, "")
        is_mux = player.source == "mux"
        truth = row(story, mux.beacons(story, 0, "localhost") if is_mux else cmcd.beacons(story, 0))
        if truth is not None:
            assert (truth["device"], truth["os"], truth["browser"]) == (read.device, read.os, read.browser)
    assert {story.player.device for story in STORIES} == {device for device, _ in DEVICES}


def test_a_collector_parses_all_devices_of_one_address_at_once() -> None:
    assert len({device.user_agent for device, _ in DEVICES}) == len(DEVICES) <= AGENTS_PARSED_BY_ADDRESS_MAX
