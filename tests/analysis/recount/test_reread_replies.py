"""Raw replies read again: strict, standard, lenient."""

from tutorsim.analysis.recount import read_again, recount
from tutorsim.records import BallotRecord
from tutorsim.vocabularies import DEFAULT_ROLES

ROLES = DEFAULT_ROLES
LABELS = dict(zip("ABCD", ROLES, strict=True))


def replied(raw, *, first=None, protocol="simple"):
    return BallotRecord.model_validate(
        {
            "voter": "v",
            "protocol": protocol,
            "labels": LABELS,
            "raw": raw,
            "parsed": None,
            "mass": {},
            "ballot_status": "abstained",
            "attempts": 1 if first is None else 2,
            "raw_first": first,
        }
    )


def read(ballot, reading):
    return read_again(ballot, candidates=ROLES, reading=reading, budget=25)


def test_each_reader_forgives_more_than_the_one_before():
    exact, quoted, chatty = replied("B"), replied("**b.**"), replied("I think so.\nVote: B")
    vote = {role: int(role == ROLES[1]) for role in ROLES}
    assert [read(b, "strict") for b in (exact, quoted, chatty)] == [vote, {}, {}]
    assert [read(b, "standard") for b in (exact, quoted, chatty)] == [vote, vote, {}]
    assert [read(b, "lenient") for b in (exact, quoted, chatty)] == [vote, vote, vote]


def test_the_first_reply_that_reads_counts():
    ballot = replied("A", first="Vote: B")
    assert read(ballot, "standard")[ROLES[0]] == 1
    assert read(ballot, "lenient")[ROLES[1]] == 1


def test_points_with_another_sum_are_rescaled_but_never_strictly():
    ballot = replied("A=5,B=5,C=0,D=0", first="none of them", protocol="cumulative")
    assert read(ballot, "strict") == {}
    assert list(read(ballot, "standard").values()) == [13, 12, 0, 0]


def test_a_ballot_counts_again_under_the_protocol_that_a_branch_counted_it_under():
    ranked = replied("B,A,C,D", protocol="ranked").model_copy(update={"counted_as": "simple"})
    assert list(read(ranked, "standard").values()) == [0, 1, 0, 0]
    # The points of A and B are equal: nobody can say whom a simple ballot would have named.
    points = replied("A=10,B=10,C=5,D=0", protocol="cumulative")
    assert read(points.model_copy(update={"counted_as": "simple"}), "standard") == {}


def test_winners_that_another_reader_changes(panel_turn, panel_episode, panel_source):
    s, m, v, c = ROLES
    turn = panel_turn("simple", {s: m, m: m, v: v, c: None})
    raws = {s: "B", m: "b.", v: "C", c: "my vote: C"}
    ballots = tuple(b.model_copy(update={"raw": raws[b.voter]}) for b in turn.ballots_final)
    episode = panel_episode(turn.model_copy(update={"ballots_final": ballots}))
    result = recount(panel_source(episode), targets=[])
    rows = {row.reading: row for row in result.readings if row.protocol is None}
    # Strict: B, C and two abstentions: m and v tie, never put to a round; the order picks m.
    strict = rows["strict"]
    assert (strict.ballots_changed, strict.abstained, strict.open_ties) == (1, 2, 1)
    assert (strict.changed.lower, strict.changed.point, strict.changed.upper) == (0, 0, 1)
    # Standard: as logged.
    assert (rows["standard"].ballots_changed, rows["standard"].changed.upper) == (0, 0)
    # Lenient: m 2, v 2, again open.
    assert (rows["lenient"].abstained, rows["lenient"].open_ties) == (0, 1)


def test_turns_without_replies_are_counted_and_not_guessed(panel_turn, panel_episode, panel_source):
    turn = panel_turn("simple", dict.fromkeys(ROLES, ROLES[0]))
    silent = tuple(b.model_copy(update={"raw": ""}) for b in turn.ballots_final)
    episode = panel_episode(turn.model_copy(update={"ballots_final": silent}))
    [row] = [
        r
        for r in recount(panel_source(episode), targets=[]).readings
        if (r.reading, r.protocol) == ("strict", None)
    ]
    assert (row.turns, row.not_computable, row.ballots) == (0, 1, 0)
