"""Templates of paths: what is noted, and what is forgotten with the endpoints that had it."""

from shared.api.paths import Paths, forms_of, known_template, prune, template_of


def test_data_is_known_by_its_form_or_by_a_route() -> None:
    paths = Paths()
    assert template_of(paths, ["users", "{integer}", "orders"]) == ("/users/{}/orders", True)
    assert template_of(paths, ["users", "{uuid}", "orders"]) == ("/users/{}/orders", True)
    assert template_of(paths, ["users", "{uuid}", "orders"]) == ("/users/{}/orders", False)
    assert template_of(paths, ["users", "me"]) == ("/users/me", True)
    assert template_of(paths, []) == ("/", False)
    assert forms_of(paths, "/users/{}/orders") == [["integer", "uuid"]]
    assert known_template(paths, ["users", "you"]) == "/users/you"
    assert template_of(paths, ["users", "{route}"]) == ("/users/{}", True)
    assert known_template(paths, ["users", "you"]) == "/users/{}"
    assert known_template(paths, ["users", "me"]) == "/users/me"


def test_what_no_endpoint_has_is_forgotten() -> None:
    paths = Paths()
    for parts in (["users", "{integer}", "orders"], ["users", "me"], ["carts", "{integer}"]):
        template_of(paths, parts)
    prune(paths, ["GET /users/{}/orders"])
    assert sorted(paths.places) == ["", "/users", "/users/{}"]
    assert [list(paths.places[before].words) for before in ("", "/users", "/users/{}")] == [["users"], [], ["orders"]]
    assert forms_of(paths, "/users/{}/orders") == [["integer"]]
