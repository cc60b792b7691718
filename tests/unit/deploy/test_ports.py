"""Ports of local processes: each is given out once."""

import pytest

from deploy.local.ports import RANGE_VARIABLE, free_port


def test_no_port_is_given_out_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RANGE_VARIABLE, "14000-14000")
    assert free_port() == 14_000
    with pytest.raises(OSError, match="no free port found between 14000 and 14000"):
        free_port()
