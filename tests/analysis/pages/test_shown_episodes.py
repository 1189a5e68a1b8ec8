"""Which episodes a page shows, and in which order."""

from types import SimpleNamespace

import pytest

from tutorsim.analysis.pages import shown_episodes as module
from tutorsim.analysis.pages.shown_episodes import Episode, Episodes
from tutorsim.errors import UsageError


def record(name, status="complete"):
    return SimpleNamespace(episode_id=name, status=status)


def of(*names, telling=None, named=()):
    records = [record(name) for name in names]
    return Episodes(records, lambda one: Episode(one.episode_id, ()), telling or {}, named)


def test_an_episode_is_made_only_when_somebody_looks_at_it():
    made = []
    shown = Episodes([record("a"), record("b")], made.append)
    assert (len(shown), shown.total, shown.ids, made) == (2, 2, ["a", "b"], [])


def test_what_is_worth_a_look_comes_first_with_its_reason():
    """c serves for both, so that d, which is late too, is one of the others."""
    telling = {
        "it is late": lambda one: one.episode_id > "b",
        "it is c": lambda o: o.episode_id == "c",
    }
    shown = of("a", "b", "c", "d", telling=telling)
    values = [(one.id, one.why) for one in shown]
    assert values == [("c", "it is late; it is c"), ("a", ""), ("b", ""), ("d", "")]
    assert [one.id for one in shown.told()] == ["c"]


def test_named_episodes_come_in_the_order_named_and_once():
    shown = of("a", "b", "c", telling={"any": lambda one: True}, named=["c", "a", "c"])
    assert [(one.id, one.why) for one in shown] == [("c", ""), ("a", "")]
    assert [one.id for one in shown.told()] == ["c", "a"]


def test_an_unknown_episode_is_refused_with_an_example():
    with pytest.raises(UsageError, match="no episode 'nowhere'") as caught:
        of("a", named=["nowhere"])
    assert "'a'" in caught.value.why


def test_a_page_of_a_large_run_holds_the_telling_ones_and_the_first_others(monkeypatch):
    monkeypatch.setattr(module, "MOST_EPISODES", 3)
    shown = of(*"abcdef", telling={"it is f": lambda one: one.episode_id == "f"})
    assert (shown.ids, shown.total) == (["f", "a", "b"], 6)


def test_where_nothing_stands_out_the_first_is_told():
    assert [one.id for one in of("a", "b").told()] == ["a"]
    assert list(of().told()) == []


def test_an_episode_stands_at_its_place():
    assert of(*"abc")[1].id == "b"
