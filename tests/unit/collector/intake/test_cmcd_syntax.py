"""CMCD's syntax: what each kind of value becomes, and that nothing but the parser's own error ever leaves it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.collector.intake.cmcd.syntax import CmcdSyntaxError, Json, parsed_dictionary


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("bl=1200", {"bl": 1200}),
        ("bl=-3", {"bl": -3}),
        ("pr=1.05", {"pr": 1.05}),
        ('cid="movie \\"9\\" \\\\ ü"', {"cid": 'movie "9" \\ ü'}),
        ('cid=""', {"cid": ""}),
        ("sf=h", {"sf": "h"}),
        ("su", {"su": True}),
        ("su=?1,bs=?0", {"su": True, "bs": False}),
        ("x=:aGk=:", {"x": "aGk="}),
        ("x=@1659578233", {"x": 1659578233}),
        ("mtp=(25500)", {"mtp": [[25500, None]]}),
        ("br=(5000;v 128;a)", {"br": [[5000, "v"], [128, "a"]]}),
        ("br=(  5000;v   128;a )", {"br": [[5000, "v"], [128, "a"]]}),
        ('nor=("seg2.m4s")', {"nor": [["seg2.m4s", None]]}),
        ('nor=("a b";r="0-9" "c")', {"nor": [["a b", {"r": "0-9"}], ["c", None]]}),
        ("br=(5000;v;x)", {"br": [[5000, {"v": True, "x": True}]]}),
        ("br=(5000; v)", {"br": [[5000, "v"]]}),
        ("ec=()", {"ec": []}),
        ("br=5000;v", {"br": [[5000, "v"]]}),
        ("su;now", {"su": [[True, "now"]]}),
        ("br=(1;v);list=1,st=l", {"br": [[1, "v"]], "st": "l"}),
        ('com.example-key="x",Org-K=2', {"com.example-key": "x", "Org-K": 2}),
        (" a=1 \t,\t b=(2) , c ", {"a": 1, "b": [[2, None]], "c": True}),
        ("a=1,a=2", {"a": 2}),
        ("url=https://cdn.example/a", {"url": "https://cdn.example/a"}),
    ],
)
def test_a_record_becomes_json(text: str, members: dict[str, Json]) -> None:
    assert parsed_dictionary(text) == members


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "a=1,",
        "a=1,,b=2",
        "a=1 b=2",
        "a=",
        "=1",
        "1=a",
        "a=(1",
        "a=(1 ",
        "a=(1,2)",
        "a=(1)(2)",
        'a="open',
        'a="bad \\n escape"',
        'a="tab\t"',
        "a=?2",
        "a=:no:way:",
        "a=1;",
        "a=1;=2",
        "a=(1;v=)",
        "a=1\nb=2",
        "a=1\n",
        "a=((1))",
        ",".join(f"k{n}=1" for n in range(1_001)),
        "a=1" + "".join(f";p{n}" for n in range(1_001)),
    ],
)
def test_what_is_no_record_says_so(text: str) -> None:
    with pytest.raises(CmcdSyntaxError):
        parsed_dictionary(text)


@given(st.text(alphabet='ab1-.,;=?()":@ \\\t\n*é', max_size=40))
@example('a=("')
@example("a=(")
@example("a=;")
def test_the_parser_raises_nothing_but_its_own_error(text: str) -> None:
    try:
        members = parsed_dictionary(text)
    except CmcdSyntaxError:
        return
    assert members


_SCALARS = st.integers(-(10**15), 10**15) | st.booleans() | st.text(alphabet='ab "\\,;=()é', max_size=12)
_KEYS = st.from_regex(r"[a-z][a-z0-9\-]{0,5}", fullmatch=True)


def _written(value: Json) -> str:
    if isinstance(value, bool):
        return "?1" if value else "?0"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "(" + " ".join(_written(item[0]) + (f";{item[1]}" if item[1] else "") for item in value) + ")"  # type: ignore[index]
    return str(value)


@given(st.dictionaries(_KEYS, _SCALARS | st.lists(st.tuples(_SCALARS, st.none() | _KEYS).map(list)), min_size=1))
def test_what_is_written_by_the_rules_is_read_back(members: dict[str, Json]) -> None:
    text = ",".join(f"{key}={_written(value)}" for key, value in members.items())
    assert parsed_dictionary(text) == members
