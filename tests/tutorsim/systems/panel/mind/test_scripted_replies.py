import re
from collections import Counter

import pytest

from tests.tutorsim.systems.panel.mind.conftest import ask
from tutorsim.ballot_reading_and_decisions import cast_as, read_ballot, repair_ballot
from tutorsim.kernel.system_and_loaded_study import Chance
from tutorsim.standin.messages_api_routes_and_replies import think
from tutorsim.systems.panel.scene_and_reading_proposals_reviews_judge_scores import (
    read_proposal,
    read_reviews,
    read_score,
)
from tutorsim.systems.panel.scripted_prompt_reading_tasks_moods_quality import (
    knowledge_of,
    style_weights,
)
from tutorsim.systems.panel.scripted_replies import judge_reply, style_of_system, vote_reply
from tutorsim.systems.panel.settings_and_members_of_compared_panels import load_panel_catalog
from tutorsim.tasks import builtin


def panel_turns(played, *conditions):
    return [turn for r in played.records if r.condition in conditions for turn in r.turns]


def share(turns, fact):
    return sum(bool(fact(turn)) for turn in turns) / len(turns)


def flipped(turn):
    totals = {
        role: sum(ballot.mass.get(role, 0) for ballot in turn.ballots_initial)
        for role in turn.decision.tallies
    }
    return max(totals, key=totals.get) != turn.decision.winner


@pytest.mark.costly
def test_a_study_has_what_later_readers_need_to_meet(played):
    turns = [turn for r in played.records for turn in r.turns if turn.decision]
    ballots = [b for turn in turns for b in (*turn.ballots_initial, *turn.ballots_final)]
    assert {turn.decision.decided_by for turn in turns} == {"vote", "tie_round", "fallback"}
    assert {ballot.ballot_status for ballot in ballots} == {"valid", "repaired", "abstained"}
    values = {turn.decision.winner for turn in turns}
    assert values == {"scaffolding", "misconception", "motivation", "metacognitive"}
    values = {attempt.code_passed for r in played.records for attempt in r.attempts}
    assert values == {True, False, None}


@pytest.mark.costly
def test_some_first_attempts_succeed_and_tutoring_helps_most_students(played):
    first = sum(bool(r.success) for r in played.records if not r.turns) / len(played.records)
    last = sum(bool(r.success) for r in played.records) / len(played.records)
    assert 0.1 < first < 0.3
    assert 0.5 < last < 0.9


@pytest.mark.costly
@pytest.mark.parametrize(
    ("condition", "least", "most"),
    [
        ("simple", 0.08, 0.35),
        ("approval", 0.1, 0.45),
        ("ranked", 0.03, 0.3),
        ("cumulative", 0.01, 0.25),
    ],
)
def test_ties_occur_at_natural_rates(played, condition, least, most):
    tied = share(panel_turns(played, condition), lambda turn: turn.decision.tied_set)
    assert least < tied < most


@pytest.mark.costly
def test_revising_changes_the_winner_now_and_then(played):
    turns = panel_turns(played, "simple", "ranked", "cumulative", "approval")
    assert 0.15 < share(turns, flipped) < 0.45


def test_replies_are_short(played):
    longest = {}
    for _, call, text in played.calls:
        longest[call.key.stage] = max(longest.get(call.key.stage, 0), len(text))
    assert longest.pop("student") < 1400
    assert longest.pop("critique") < 900
    assert max(longest.values()) < 900


def test_the_same_body_and_chance_give_the_same_reply(played):
    for _, call, _ in played.calls[:200]:
        body = call.request.body()
        assert think(body, Chance("x", str(call.key))) == think(body, Chance("x", str(call.key)))


# --- Judge ----------------------------------------------------------------------------------------

TASK = builtin("sciq")[2]
ABOUT = knowledge_of(TASK.question)
SYSTEM = "You grade a student's answer. SCORE: <number>"


def user(answer, question=TASK.question, reference=f"{TASK.correct_answer}\n{TASK.support}"):
    return f"Question:\n{question}\n\nReference answer:\n{reference}\n\nStudent's answer:\n{answer}"


def scores(asked):
    read = [read_score(judge_reply(asked, Chance(i))) for i in range(200)]
    return {score.value for score in read if score is not None}


@pytest.mark.parametrize(
    ("answer", "least", "most"),
    [
        (f"{ABOUT.answer}. {ABOUT.because}", 0.85, 1.0),
        (ABOUT.answer, 0.6, 0.75),
        (ABOUT.clue, 0.3, 0.5),
        (ABOUT.beliefs[0], 0.0, 0.2),
        (f"I give up on {ABOUT.topic}.", 0.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_the_score_follows_what_the_answer_shows(answer, least, most):
    found = scores(ask(SYSTEM, user(answer)))
    assert least <= min(found)
    assert max(found) <= most


ROCK = {
    "question": "Which rock is under Zzyzx?",
    "reference": "basalt\namber cobalt ember\nflint garnet",
}
ZORB = {"question": "What is zorb?", "reference": "a green moss\nIt grows on old stones."}


@pytest.mark.parametrize(
    ("answer", "strange", "least", "most"),
    [
        ("basalt, amber cobalt", ROCK, 0.85, 1.0),  # two of five words of the reason
        ("basalt, amber", ROCK, 0.6, 0.75),  # one
        ("basalt", ROCK, 0.6, 0.75),
        ("amber cobalt", ROCK, 0.0, 0.2),
        ("Zorb is green moss.", ZORB, 0.6, 1.0),
        ("Green moss, it grows on old stones.", ZORB, 0.85, 1.0),
        ("Zorb is a planet.", ZORB, 0.0, 0.2),
    ],
)
def test_of_a_strangers_question_the_score_follows_the_reference(answer, strange, least, most):
    found = scores(ask(SYSTEM, user(answer, **strange)))
    assert least <= min(found)
    assert max(found) <= most


def test_judging_the_same_answer_again_seldom_changes_the_score():
    asked = ask(SYSTEM, user(ABOUT.clue))
    read = [read_score(judge_reply(asked, Chance(i))) for i in range(400)]
    values = [score.value for score in read if score is not None]
    assert 0 < sum(value != max(set(values), key=values.count) for value in values) < 60


def test_a_judge_seldom_forgets_the_form():
    asked = ask(SYSTEM, user(ABOUT.answer))
    unread = sum(read_score(judge_reply(asked, Chance(i))) is None for i in range(3000))
    assert 0 < unread < 30


def test_code_does_not_count_as_words():
    prompt = builtin("humaneval")[0].prompt.rstrip()
    answer = f"No idea.\n  ```python\n  # {knowledge_of(prompt).answer}\n  ```"
    asked = ask(SYSTEM, f"Programming task:\n{prompt}\n\nStudent's message:\n{answer}\n\nGrade")
    assert max(scores(asked)) <= 0.2


# --- Tutor ----------------------------------------------------------------------------------------

ROLES = ("scaffolding", "misconception", "motivation", "metacognitive")


def replies(played, stage, attempt=1):
    return [
        (spec, call, text)
        for spec, call, text in played.calls
        if (call.key.stage, call.key.attempt) == (stage, attempt)
    ]


@pytest.mark.parametrize("role", [*ROLES, "baseline"])
def test_a_role_is_known_by_its_title_and_the_single_tutor_has_a_style_of_its_own(role):
    template, style = {"baseline": ("baseline_system", "general")}.get(role, ("tutor_system", role))
    catalog = load_panel_catalog()
    system = catalog.fill(template, **catalog.roles[role].model_dump())
    assert style_of_system(system).name == style


def test_a_role_from_elsewhere_is_known_by_its_objective():
    assert style_of_system("You cheer. Objective: encourage, build confidence").name == "motivation"
    assert style_of_system("You make them plan and watch themselves").name == "metacognitive"


def test_drafts_show_the_style_of_their_role(played):
    for _, call, text in replies(played, "propose"):
        weights = style_weights(text)
        expected = "general" if call.key.agent == "baseline" else call.key.agent
        assert max(weights, key=weights.get) == expected


def test_proposals_have_two_to_four_sentences_and_mention_the_task(played):
    for stage in ("propose", "revise"):
        for _, _, text in replies(played, stage):
            found = read_proposal(text)
            if found is not None:
                assert 2 <= len(re.findall(r"[.?!]'?\.?(?:\s|$)", found.text)) <= 4, found.text


def test_confidence_is_stated_where_it_is_asked_for(played):
    for _, call, text in replies(played, "propose"):
        found = read_proposal(text)
        if found is not None:
            assert (found.confidence is None) == (call.key.agent == "baseline")


def test_a_proposal_now_and_then_lacks_its_marker(played):
    first = replies(played, "propose") + replies(played, "revise")
    unread = sum(read_proposal(text) is None for _, _, text in first)
    assert 0 < unread < 0.03 * len(first)


def test_a_revision_keeps_its_opening_and_takes_at_most_one_sentence_of_a_peer(played):
    for record in played.records:
        for turn in record.turns:
            for role, final in turn.proposals_final.items():
                own = sentences(turn.proposals_initial[role].text)
                assert sentences(final.text)[0] == own[0]
                peers = [
                    set(sentences(draft.text)) - set(own)
                    for other, draft in turn.proposals_initial.items()
                    if other != role
                ]
                assert all(len(peer & set(sentences(final.text))) <= 1 for peer in peers)


def sentences(text):
    return re.split(r"(?<=[.?!])\s+", text)


def test_some_revisions_change_the_draft_and_some_do_not(played):
    changed = Counter(
        turn.proposals_initial[role].text != turn.proposals_final[role].text
        for record in played.records
        for turn in record.turns
        for role in turn.proposals_final
        if role != "baseline"
    )
    assert 0.4 < changed[True] / changed.total() < 0.95


def test_a_belief_is_called_the_students_own_only_when_it_was_said(played):
    for record in played.records:
        for turn in record.turns:
            said = record.attempts[turn.turn - 1].text
            draft = turn.proposals_initial.get("misconception")
            if draft is not None and ("One belief here" in draft.text or "Your b" in draft.text):
                assert re.search(r": '(.*?)'\.", draft.text)[1] in said


def test_reviews_have_a_block_for_every_label(played):
    first = [*replies(played, "critique"), *replies(played, "tie_critique")]
    unread = 0
    for _, call, text in first:
        labels = re.findall(r"^([A-H]): ", call.request.user, re.MULTILINE)
        notes = read_reviews(text, labels)
        unread += notes is None
        assert notes is None or (list(notes) == labels and all(n.weakness for n in notes.values()))
    assert 0 < unread < 0.02 * len(first)


def test_some_reviews_compare_with_another_draft(played):
    compared = [text for _, _, text in replies(played, "critique") if "draft " in text]
    assert compared
    assert all(re.search(r"draft [A-D]\b", text) for text in compared)


# --- Voter ----------------------------------------------------------------------------------------

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
def test_ballots_can_be_read_but_for_a_few_percent(protocol, count, budget):
    labels = "ABCDEFGH"[:count]
    read = [
        read_ballot(text, labels, form=protocol, budget=budget)
        for text in ballots(ask, protocol, count=count, budget=budget)
    ]
    assert 0 < read.count(None) < 0.12 * len(read)


def test_a_second_asking_helps_most_of_the_time():
    texts = ballots(ask, "simple", again=True)
    unread = sum(read_ballot(text, "ABCD", form="simple") is None for text in texts)
    assert 0.12 * len(texts) < unread < 0.4 * len(texts)


def test_unreadable_points_mostly_have_another_sum():
    unread = [
        text
        for text in ballots(ask, "cumulative", n=1500)
        if read_ballot(text, "ABCD", form="cumulative") is None
    ]
    sums = [sum(map(int, re.findall(r"=(\d+)", text))) for text in unread]
    assert sum(total not in (0, 25) for total in sums) > 0.5 * len(sums)
    assert 0 in sums


def test_unreadable_rich_ballots_contradict_themselves_or_have_another_sum():
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
    sums = {sum(map(int, re.findall(r"\d+", text))) for text in unread}
    assert sums == {0, 25, 50}  # prose, points as they are and doubled


def steady_ballot(form, *, role="scaffolding", call=0, seed=7, **shape):
    asked = ask(f"You sit on the panel as its {role} tutor.", prompt(form, **shape))
    text = vote_reply(asked, Chance(call), steady=Chance(seed, "steady"))
    labels = "ABCDEFGH"[: shape.get("count", 4)]
    return read_ballot(text, labels, form=form, budget=shape.get("budget", 25))


@pytest.mark.parametrize("budget", [25, 7, 1000])
@pytest.mark.parametrize("count", [2, 4, 8])
def test_a_steady_voter_says_the_same_in_every_format(count, budget):
    """Approvals with the usual points alone: a bar of fewer or more falls elsewhere."""
    for seed in range(30):
        said = {
            form: steady_ballot(form, seed=seed, call=n, count=count, budget=budget)
            for n, form in enumerate(FORMS)
        }
        assert None not in said.values()
        for protocol in ("simple", "ranked", "cumulative"):
            assert cast_as(said["rich"], form="rich", protocol=protocol) == said[protocol]
        assert budget != 25 or set(said["approval"]) == set(said["rich"].approved)


@pytest.mark.parametrize("form", FORMS)
def test_a_steady_voter_says_the_same_each_time_and_differs_from_others(form):
    assert len({str(steady_ballot(form, call=n)) for n in range(30)}) == 1
    assert len({str(steady_ballot(form, seed=n)) for n in range(30)}) > 1


def test_voters_prefer_what_fits_but_do_not_agree_on_it(played):
    finals = [
        turn.ballots_final
        for record in played.records
        if record.condition == "simple"
        for turn in record.turns
    ]
    together = sum(len({ballot.parsed for ballot in votes}) == 1 for votes in finals)
    assert 0.05 * len(finals) < together < 0.7 * len(finals)


def test_the_first_label_shown_gets_a_little_more_than_its_share():
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


def test_a_vote_with_nothing_to_choose_from_is_for_nobody():
    asked = ask("You assess replies to a student.", "Vote for the one best reply.")
    assert vote_reply(asked, Chance(1)) == "none"


# --- Scripted mind --------------------------------------------------------------------------------


def test_draws_are_the_same_on_every_machine():
    assert Chance(7, "a").digest("b").hex()[:16] == "8ac5786ae848d9b0"
    assert round(Chance(7, "a").unit("b"), 9) == 0.542075659


def test_other_parts_or_another_name_draw_anew():
    draws = {Chance(*parts).unit(name) for parts in [(1,), (2,), (1, 2)] for name in "ab"}
    assert len(draws) == 6


def test_parts_do_not_run_together():
    assert Chance("a", "b").unit("c") != Chance("ab").unit("c")
    assert Chance("a").unit("bc") != Chance("a", "b").unit("c")


def test_units_spread_evenly_from_0_to_1():
    draws = [Chance(i).unit("x") for i in range(4000)]
    assert 0 <= min(draws) < 0.01
    assert 0.99 < max(draws) < 1
    assert abs(sum(draws) / 4000 - 0.5) < 0.02


def test_every_option_is_picked_equally_often():
    counts = Counter(Chance(i).pick("x", "abcd") for i in range(4000))
    assert all(abs(counts[option] - 1000) < 120 for option in "abcd")


def test_bells_have_mean_0_and_deviation_1():
    draws = [Chance(i).bell("x") for i in range(4000)]
    assert abs(sum(draws) / 4000) < 0.05
    assert abs(sum(draw * draw for draw in draws) / 4000 - 1) < 0.06
    assert max(map(abs, draws)) <= 3.5


def test_text_with_half_a_surrogate_pair_is_no_obstacle():
    assert 0 <= Chance("\ud800").unit("\udfff") < 1
