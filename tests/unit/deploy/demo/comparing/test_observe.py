"""The players' accounts of a demo: several are one."""

import json
from pathlib import Path

from deploy.demo.comparing.observe import read_truths


def test_several_runs_of_players_are_one_account_and_done_when_all_are(tmp_path: Path) -> None:
    files = [tmp_path / "0.json", tmp_path / "1.json"]
    files[0].write_text(json.dumps({"done": True, "totals": {"posts": 2}, "views": [{"view_id": "a"}]}))
    first = read_truths(files)
    assert (first.done, first.total("posts")) == (False, 2)
    files[1].write_text(json.dumps({"done": True, "totals": {"posts": 3}, "views": [{"view_id": "b"}]}))
    both = read_truths(files)
    assert (both.done, both.total("posts")) == (True, 5)
    assert [view["view_id"] for view in both.views] == ["a", "b"]
    assert not read_truths([]).done
