import re
from collections import Counter

import pytest

from tutorsim.kernel.system import Chance
from tutorsim.systems.panel.scripted_replies import vote_reply
from tutorsim.voting import cast_as, read_ballot, repair_ballot

FORMS = {
    "simple": "Vote for the one best reply. Reply with its label, for example: B",
    "ranked": "Rank all replies from best to worst.",
    "cumulative": "Distribute exactly {budget} points over the replies, more for better ones.",
    "approval": "Approve every reply that is good enough to send.",
    "rich": "Order all replies from best to worst and distribute exactly {budget} points over "
    "them. Put a bar | after the last reply that is good enough to send.",
}
TEXTS = (
    "Let us take it apart and look at one small piece.",
    "One belief here needs a second look: 'x'.",
    "You put an answer on the page, and that is real work.",
    "Ask yourself how you know what you wrote.",
    "That is a good start.",
    "Think again.",
    "There is no rush.",
    "Make a plan.",
)


def prompt(protocol, *, count=4, budget=25, again=False, turned=0):
    texts = TEXTS[turned:count] + TEXTS[:turned] if turned else TEXTS
    drafts = "\n\n".join(f"{label}: {texts[i]}" for i, label in enumerate("ABCDEFGH"[:count]))
    tail = "\n\nYour last reply could not be read as a ballot." if again else ""
    return f"Question:\nWhy?\n\n{drafts}\n\n{FORMS[protocol].format(budget=budget)}{tail}"


def ballots(ask, protocol, *, n=300, **shape):
    asked = ask("You sit on the panel as its scaffolding tutor.", prompt(protocol, **shape))
    return [vote_reply(asked, Chance(i)) for i in range(n)]


@pytest.mark.costly
@pytest.mark.parametrize("protocol", FORMS)
@pytest.mark.parametrize(("count", "budget"), [(2, 25), (4, 25), (8, 7), (3, 1000)])
def test_ballots_can_be_read_but_for_a_few_percent(ask, protocol, count, budget):
    labels = "ABCDEFGH"[:count]
    read = [
        read_ballot(text, labels, form=protocol, budget=budget)
        for text in ballots(ask, protocol, count=count, budget=budget)
    ]
    assert 0 < read.count(None) < 0.12 * len(read)


def test_a_second_asking_helps_most_of_the_time(ask):
    texts = ballots(ask, "simple", again=True)
    unread = sum(read_ballot(text, "ABCD", form="simple") is None for text in texts)
    assert 0.12 * len(texts) < unread < 0.4 * len(texts)


def test_unreadable_points_mostly_have_another_sum(ask):
    unread = [
        text
        for text in ballots(ask, "cumulative", n=1500)
        if read_ballot(text, "ABCD", form="cumulative") is None
    ]
    sums = [sum(map(int, re.findall(r"=(\d+)", text))) for text in unread]
    assert sum(total not in (0, 25) for total in sums) > 0.5 * len(sums)
    assert 0 in sums


def test_unreadable_rich_ballots_contradict_themselves_or_have_another_sum(ask):
    unread = [
        text
        for text in ballots(ask, "rich", n=1500)
        if read_ballot(text, "ABCD", form="rich") is None
    ]
    repaired = [repair_ballot(text, "ABCD", form="rich") is not None for text in unread]
    assert 0.1 < sum(repaired) / len(unread) < 0.5
    assert any("=" in text and "|" not in text for text in unread)
    assert any(text.endswith("|") for text in unread)
    assert any("=" not in text for text in unread)


def steady_ballot(ask, form, *, role="scaffolding", call=0, seed=7, **shape):
    asked = ask(f"You sit on the panel as its {role} tutor.", prompt(form, **shape))
    text = vote_reply(asked, Chance(call), steady=Chance(seed, "steady"))
    labels = "ABCDEFGH"[: shape.get("count", 4)]
    return read_ballot(text, labels, form=form, budget=shape.get("budget", 25))


@pytest.mark.parametrize("budget", [25, 7, 1000])
@pytest.mark.parametrize("count", [2, 4, 8])
def test_a_steady_voter_says_the_same_in_every_format(ask, count, budget):
    """Approvals with the usual points alone: a bar of fewer or more falls elsewhere."""
    for seed in range(30):
        said = {
            form: steady_ballot(ask, form, seed=seed, call=n, count=count, budget=budget)
            for n, form in enumerate(FORMS)
        }
        assert None not in said.values()
        for protocol in ("simple", "ranked", "cumulative"):
            assert cast_as(said["rich"], form="rich", protocol=protocol) == said[protocol]
        assert budget != 25 or set(said["approval"]) == set(said["rich"].approved)


@pytest.mark.parametrize("form", FORMS)
def test_a_steady_voter_says_the_same_each_time_and_differs_from_others(ask, form):
    assert len({str(steady_ballot(ask, form, call=n)) for n in range(30)}) == 1
    assert len({str(steady_ballot(ask, form, seed=n)) for n in range(30)}) > 1


def test_voters_prefer_what_fits_but_do_not_agree_on_it(played):
    finals = [
        turn.ballots_final
        for record in played.records
        if record.condition == "simple"
        for turn in record.turns
    ]
    together = sum(len({ballot.parsed for ballot in votes}) == 1 for votes in finals)
    assert 0.05 * len(finals) < together < 0.7 * len(finals)


def test_the_first_label_shown_gets_a_little_more_than_its_share(ask):
    # Each reply stands in each place equally often, so only the place can make a difference.
    chosen = Counter(
        text for turned in range(4) for text in ballots(ask, "simple", n=200, turned=turned)
    )
    assert 0.26 < chosen["A"] / chosen.total() < 0.45


def test_approvals_range_from_nobody_to_everybody(played):
    sizes = {
        len(ballot.parsed)
        for record in played.records
        if record.condition == "approval"
        for turn in record.turns
        for ballot in turn.ballots_final
        if ballot.parsed is not None
    }
    assert sizes == {0, 1, 2, 3, 4}


def test_a_vote_with_nothing_to_choose_from_is_for_nobody(ask):
    asked = ask("You assess replies to a student.", "Vote for the one best reply.")
    assert vote_reply(asked, Chance(1)) == "none"
