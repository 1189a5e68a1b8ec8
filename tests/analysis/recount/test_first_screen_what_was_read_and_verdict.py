"""What a recount says first: its sentences, and a row for every rule."""

import re

import pytest

from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.counting.names_and_parameters_of_rules import TARGETS
from tutorsim.analysis.recount import recount
from tutorsim.analysis.recount.first_screen_what_was_read_and_verdict import (
    read_words,
    recount_verdict,
    verdict_table,
)
from tutorsim.vocabularies import PROTOCOLS


def split(text):
    return text.split(". ")


def test_a_recount_says_what_is_sure_and_what_stays_open(decided_and_tied):
    found = recount(decided_and_tied, exempt=(0, 1))
    order, *rules, untested = recount_verdict(found)
    assert order.startswith("The fallback order decided 1 of 2 turns")
    ranked = next(text for text in rules if text.startswith("Ranked"))
    # MI has 3 of 4 first places: at least 3 × 3 points, S at most 3 + 3 × 2 of 9; so a tie is open.
    assert ranked == "Ranked voting surely keeps the winner of 0 of 2 turns."
    table = verdict_table(found)
    assert table is not None
    assert table.data.filter(rule="ranked").row(0)[1:5] == (0, 0, 2, 2)
    assert all(len(re.findall(r"\d+", s)) <= 2 for t in (order, *rules, untested) for s in split(t))
    assert "which these ballots do not test" in untested


def test_every_rule_that_is_asked_is_answered_in_a_sentence_and_no_other(decided_and_tied):
    for target in TARGETS:
        said = recount_verdict(recount(decided_and_tied, targets=[target], exempt=(0,)))
        if target == "simple":  # both votes were simple already
            assert said[0].startswith("Simple voting: every turn was logged under it")
            continue
        name = f"{target.capitalize()} voting" if target in PROTOCOLS else f"The rule {target}"
        values = [text.startswith(f"{name} surely keeps the winner of ") for text in said]
        assert values == [True, False]


def test_nothing_stays_sure_of_nothing(decided_and_tied):
    """Everybody may approve of everybody, so no winner is surely kept."""
    untested = recount_verdict(recount(decided_and_tied, targets=["approval"], exempt=(0, 1)))[-1]
    assert untested.endswith("which these ballots do not test.")


UNANIMOUS = "episode_id,turn,stage,voter,candidate,mass,protocol\n" + "".join(
    f"e,1,vote_final,{voter},{candidate},{int(candidate == 'red')},simple\n"
    for voter in ("ann", "ben", "cem")
    for candidate in ("red", "blue")
)


def test_the_table_has_both_readings_of_a_tie(tmp_path):
    """Everybody may approve of blue too: a tie, which only an order gives to red."""
    path = tmp_path / "votes.csv"
    path.write_text(UNANIMOUS)
    ordered = open_source(path, hints=Hints(fallback_order=("red", "blue")))
    found = recount(ordered, targets=["approval"], exempt=[0])
    assert recount_verdict(found)[0] == "Approval voting surely keeps the winner of 0 of 1 turn."
    table = verdict_table(found)
    assert table is not None
    assert table.data.row(-1) == ("approval, any number", 0, 0, 1, 1, 1)
    without = verdict_table(recount(open_source(path), targets=["approval"], exempt=[0]))
    assert without is not None
    assert without.data.row(-1) == ("approval, any number", 0, 0, 1, 1)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("judge,ann,ben\nv,6,1\nw,2,9\nu,,\n",
         "1 vote of 3 voters, score ballots. 1 ballot is without a mark. Candidates: ann and "
         "ben.|"
         "The highest score is the best: voter v puts ann first and ben last.|Winner: ben."),
        ("voter,poll,vote\nv,1,b\nv,2,b\nw,2,a\nv,3,c\nw,3,d\nx,3,e\nv,4,f\nw,4,g\nx,4,h\n",
         "4 votes of up to 3 voters each, simple ballots. Candidates: a, b, c, d, e, f, g and h.|"
         "Winners: b in 1; a tie in 2; a tie in 3; a tie in 4."),
        ("voter,ranking\nv,a\nw,a\n",
         "1 vote of 2 voters, ranked ballots. Candidates: a.|A ranking is read best first.|"
         "Winner, by Borda points: a."),
        ("voter,poll,vote\nv,1,b\nv,2,b\nw,2,a\nv,3,a\nw,3,a\nv,4,c\nv,5,a\n",
         "5 votes of up to 2 voters each, simple ballots. Candidates: a, b and c.|"
         "Won most often: a in 2, b in 1; 1 other candidate won too. 1 vote ended in a tie."),
        ("voter,ranking\n" + "v,c1>c2>c3>c4>c5>c6>c7>c8>c9\nw,c2>c1>c3>c4>c5>c6>c7>c8>c9\n",
         "1 vote of 2 voters, ranked ballots. Candidates: c1, c2, c3, c4, c5, c6, c7, c8 and "
         "1 more.|A ranking is read best first: voter v puts c1 first and c9 last.|"
         "Tied for the win, by Borda points: c1 and c2."),
    ],
)  # fmt: skip
def test_of_ballots_from_elsewhere_it_says_what_was_read_and_who_won(tmp_path, rows, said):
    (tmp_path / "b.csv").write_text(rows)
    source = open_source(tmp_path / "b.csv")
    assert "|".join(read_words(source, recount(source, targets=(), tables=("orders",)))) == said
