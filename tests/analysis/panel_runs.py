"""Small made-up runs of panels."""

from dataclasses import replace
from typing import Any

from tutorsim import records
from tutorsim.ballot_reading_and_decisions import decide, masses_of
from tutorsim.vocabularies import DEFAULT_ROLES, Protocol

LETTERS = "ABCDEFGH"


def make_ballot(voter, choice, *, protocol, candidates, shown=None):
    """A ballot; labels follow `shown`, by default the candidates' own order.

    A rich one counts as cumulative.
    """
    rule: Protocol = "cumulative" if protocol == "rich" else protocol
    return records.BallotRecord(
        voter=voter, protocol=protocol, counted_as="cumulative" if protocol == "rich" else None,
        labels=dict(zip(LETTERS, shown or candidates, strict=False)), raw="as cast", parsed=choice,
        mass=masses_of(choice, candidates, protocol=rule),
        ballot_status="abstained" if choice is None else "valid",
        attempts=1 if choice is not None else 2,
    )  # fmt: skip


def panel_turn(
    protocol,
    final,
    *,
    initial=None,
    tie=None,
    others=None,
    turn=1,
    roles=DEFAULT_ROLES,
    order=None,
    texts=None,
    confidence=None,
    shown=None,
):
    """One panel turn, decided by the real rule. `initial` is `final` unless given.

    `others`: format → diagnostic ballots on the same proposals.
    `shown`: voter → roles in the order of the labels that this voter saw.
    """

    def cast(ballots, candidates, form=protocol):
        return tuple(
            make_ballot(
                voter,
                choice,
                protocol=form,
                candidates=candidates,
                shown=(shown or {}).get(voter) if candidates is roles else None,
            )
            for voter, choice in ballots.items()
        )

    ballots_final = cast(final, roles)
    tallied = decide([b.mass for b in ballots_final], roles, order=order or roles)
    tie_round = None
    if tie is not None:
        tie_round = records.TieRound(
            candidates=tallied.tied_set, ballots=cast(tie, tallied.tied_set)
        )
    decision = decide(
        [b.mass for b in ballots_final],
        roles,
        order=order or roles,
        tie_round=None if tie_round is None else [b.mass for b in tie_round.ballots],
    )
    proposals = {
        role: records.Proposal(
            text=(texts or {}).get(role, f"Think about {role}."),
            confidence=(confidence or {}).get(role),
        )
        for role in roles
    }
    return records.Turn(
        turn=turn, proposals_initial=proposals,
        ballots_initial=cast(initial or final, roles), proposals_final=proposals,
        ballots_final=ballots_final,
        ballots_as={form: cast(given, roles, form) for form, given in (others or {}).items()},
        tie_round=tie_round, decision=decision, delivered=proposals[decision.winner].text,
    )  # fmt: skip


def panel_episode(
    *turns,
    task="t1",
    persona="novice",
    condition=None,
    benchmark="sciq",
    scores=(0.1, 0.4),
    codes=None,
    threshold=0.75,
    status="complete",
    repeat=1,
    panel=None,
):
    """An episode over finished turns; without turns and a condition, a single-tutor one."""
    condition = condition or (turns[0].ballots_final[0].protocol if turns else "baseline")
    codes = codes or [None] * len(scores)
    attempts = tuple(
        records.Attempt(turn=i, text=f"Attempt {i}.", score=score, code_passed=code)
        for i, (score, code) in enumerate(zip(scores, codes, strict=True))
    )
    done = status == "complete"
    passed = scores[-1] is not None and scores[-1] >= threshold
    episode_id = f"{benchmark}.{task}.{persona}.{condition}"
    episode_id += f".{panel}" * (panel is not None) + f".r{repeat:02d}" * (repeat > 1)
    return records.EpisodeRecord.model_validate(
        {"episode_id": episode_id, "benchmark": benchmark, "task_id": task, "persona": persona,
         "condition": condition, "panel": panel, "repeat": repeat, "status": status,
         "failure": None if done else {"key": "1/propose/motivation/1", "error": "no reply"},
         "attempts": attempts, "turns": turns, "turns_taken": len(scores) - 1,
         "initial_correctness": scores[0], "final_correctness": scores[-1],
         "initial_code_passed": codes[0], "code_passed": codes[-1],
         "success": (passed and codes[-1] is not False) if done else None,
         "calls": (records.CallRecord(key="0/student/student/1", stage="student", model="model-a",
                              stop_reason="end_turn", input_tokens=10, output_tokens=5),)},
    )  # fmt: skip


def run_record(**settings):
    """The head of a run, with any setting of the study replaced."""
    study: dict[str, Any] = {
        "name": "made-up",
        "seed": 7,
        "personas": ("novice", "help_avoidant"),
        "baseline_role": "general",
        "models": {"tutor": "model-a", "judge": "model-a", "student": "model-b"},
    }
    return records.RunRecord(
        study=records.StudySettings.model_validate(study | settings), study_digest="a" * 64,
        recording_digest="b" * 64,
        provenance=records.Provenance(kind="stand-in", name="made-up", models=("model-a",)),
    )  # fmt: skip


def panel_source(*episodes, **settings):
    """A run's `Source` without a folder."""
    from tutorsim.analysis.ballots.recount_source import Source
    from tutorsim.analysis.runs.branch_counts_turns_siblings_share import (
        without_shared_turns,
    )
    from tutorsim.analysis.runs.exported_tables import ballots_table

    run = run_record(**settings)
    return Source(
        name="made-up",
        rows=ballots_table(without_shared_turns(episodes), run=run),
        fallback_order=run.study.deciding_order,
        budget=run.study.cumulative_budget,
        run=run,
        episodes=episodes,
    )


def with_retest(source, *votes):
    """A source whose votes were asked again.

    Args:
        source: A run's source.
        votes: Episode id, turn, stage, and what each voter said in every repeat.
    """
    episodes = {e.episode_id: e for e in source.episodes}
    again: dict[str, list[records.RetestVote]] = {}
    for episode_id, turn, stage, repeats in votes:
        [logged] = [t for t in episodes[episode_id].turns if t.turn == turn]
        first = (logged.ballots_initial if stage == "vote_initial" else logged.ballots_final)[0]
        candidates = tuple(first.labels.values())
        cast = tuple(
            tuple(
                make_ballot(voter, choice, protocol=first.protocol, candidates=candidates)
                for voter, choice in repeat.items()
            )
            for repeat in repeats
        )
        vote = records.RetestVote.model_validate({"turn": turn, "stage": stage, "repeats": cast})
        again.setdefault(episode_id, []).append(vote)
    head = records.RetestHead(
        recording_digest="b" * 64,
        repeats=max((len(repeats) for *_, repeats in votes), default=0),
        stages=tuple(dict.fromkeys(vote[2] for vote in votes)),  # type: ignore[arg-type]
        provenance=records.Provenance(kind="stand-in", name="asked again"),
    )
    found = tuple(records.RetestRecord(episode_id=e, votes=tuple(v)) for e, v in again.items())
    return replace(source, retest=records.Retest(head, found))


def votes(*choices):
    """Choices by who makes them, in the order of roles."""
    return dict(zip(DEFAULT_ROLES, choices, strict=True))
