"""A run folder built by the flow itself, from canned replies that a hash varies."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tutorsim import records
from tutorsim.errors import CallFailed
from tutorsim.kernel.flow_drivers_and_call_log import CodeResult, drive, scripted
from tutorsim.kernel.load_and_check_study_file import load_study
from tutorsim.kernel.study_file_and_episode_spec import EpisodeSpec
from tutorsim.model import Call
from tutorsim.systems.panel.episode_flow_and_study import episode
from tutorsim.systems.panel.scene_and_reading_proposals_reviews_judge_scores import Scene

Replies = Callable[[EpisodeSpec, Call], str]

STUDY = """
name = "built"
seed = 3
conditions = ["baseline", "simple", "ranked", "cumulative", "approval"]
personas = ["low_confidence_novice", "help_avoidant"]

[benchmarks.sciq]
limit = 1

[benchmarks.humaneval]
limit = 1
"""

SEVERAL_FORMATS = STUDY.replace(
    'conditions = ["baseline", "simple", "ranked", "cumulative", "approval"]',
    'conditions = ["simple", "ranked"]\nvote_formats = ["simple", "approval", "rich"]',
)

HOSTILE = (
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 [bold]markup[/bold] [link=http://x]y[/link] "
    "<script>alert(1)</script> \u202edesrever\u202c \u2028 \x9b2J :smile: " + "w" * 400
)


def draw(*parts):
    """A number that depends on the parts alone."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


def usual_reply(spec, call):
    """Replies that fit the stage: votes vary, some are unreadable, scores rise with turns."""
    key = call.key
    chance = draw(spec.episode_id, key)
    match key.stage:
        case "student":
            return f"I think it is answer {key.turn}, but I am not sure."
        case "judge":
            first = chance % 5 == 0 and key.turn == 0
            return f"SCORE: {1.0 if first else min(0.4 + 0.3 * key.turn, 1.0)}\nScored in turn."
        case "propose" | "revise":
            return (
                f"PROPOSAL: {key.agent} suggests step {key.turn} in {key.stage}.\n"
                f"RATIONALE: It is the next step.\nCONFIDENCE: {40 + chance % 60}"
            )
        case "critique" | "tie_critique":
            blocks = (f"{x}:\nSTRENGTH: {x} is clear.\nWEAKNESS: {x} is long." for x in "ABCD")
            return "\n".join(blocks)
        case _:
            return _ballot(spec.condition, chance)


def _ballot(protocol, chance):
    if chance % 23 == 0:
        return "I cannot choose."
    first = "AB"[chance % 2]
    match protocol:
        case "simple":
            return first
        case "ranked":
            return "A,B,C,D" if chance % 2 else "B,A,D,C"
        case "cumulative":
            return "A=10,B=5,C=5,D=5" if chance % 3 else "A=10,B=10,C=10,D=10"
        case _:
            return "A,B" if chance % 2 else "none"


@dataclass(frozen=True)
class BuiltRun:
    folder: Path
    run: records.RunRecord
    episodes: tuple[records.EpisodeRecord, ...]


def write_run(
    folder,
    *,
    study=STUDY,
    replies=usual_reply,
    fail=lambda spec, call: False,
    keep=lambda spec: True,
    kind="stand-in",
):
    """Run the study against canned replies and write its log."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.toml").write_text(study, encoding="utf-8")
    loaded = load_study(folder / "study.toml")
    episodes = tuple(_episode(loaded, spec, replies, fail) for spec in loaded.grid() if keep(spec))
    run = records.RunRecord(
        study=loaded.settings(), study_digest=loaded.digest(), recording_digest="0" * 64,
        provenance=records.Provenance(kind=kind, name="built by a test",
                              models=("claude-haiku-4-5", "claude-sonnet-4-5"),
                              recorded_from="2026-01-02", recorded_to="2026-01-03"),
        packages={"tutorsim": "0"}, episodes=len(episodes),
    )  # fmt: skip
    write_records(folder, run, episodes)
    return BuiltRun(folder, run, episodes)


def write_records(folder, run, episodes):
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(records.to_line(record) + "\n" for record in episodes)
    (folder / records.EPISODES_FILE).write_text(lines, encoding="utf-8")
    (folder / records.RUN_FILE).write_text(records.to_line(run) + "\n", encoding="utf-8")


def ask_again(run):
    """Add a retest to a run: of every first vote, in which each voter answers as the next did."""
    again = []
    for one in run.episodes:
        votes = []
        for turn in one.turns:
            first = turn.ballots_initial
            moved = tuple(
                replace(a, parsed=b.parsed, mass=b.mass)
                for a, b in zip(first, (*first[1:], *first[:1]), strict=True)
            )
            if moved:
                vote = {"turn": turn.turn, "stage": "vote_initial", "repeats": (moved,)}
                votes.append(records.RetestVote(**vote))
        again.append(records.RetestRecord(episode_id=one.episode_id, votes=tuple(votes)))
    head = records.RetestHead(
        recording_digest="0" * 64,
        repeats=1,
        stages=("vote_initial",),
        provenance=records.Provenance(kind="stand-in", name="asked again", models=("model-c",)),
    )
    lines = "".join(records.to_line(record) + "\n" for record in again)
    (run.folder / records.RETEST_FILE).write_text(lines, encoding="utf-8")
    (run.folder / records.RETEST_HEAD_FILE).write_text(records.to_line(head) + "\n", "utf-8")
    return run.folder


def _episode(loaded, spec, replies, fail):
    def reply(call):
        if fail(spec, call):
            raise CallFailed(f"Call {call.key} failed: HTTP 500.", key=str(call.key))
        return replies(spec, call)

    def judge_code(run):
        outcome = "pass" if draw(spec.episode_id, run.turn) % 2 else "fail"
        return CodeResult(
            "def f():\n    pass", records.VerdictRecord(outcome=outcome, reason="tested")
        )

    return drive(episode(Scene(loaded, spec)), scripted(reply, judge_code=judge_code))


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Twenty episodes under every condition, with ties, abstentions and repairs."""
    return write_run(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="session")
def several_formats(tmp_path_factory):
    """Panel episodes under two conditions, asked for three more formats on the same proposals."""

    def reply(spec, call):
        if not call.key.stage.startswith("vote_as_"):
            return usual_reply(spec, call)
        form = call.key.stage.removeprefix("vote_as_")
        chance = draw(spec.episode_id, call.key)
        return "A=12,B=7|C=4,D=2" if form == "rich" else _ballot(form, chance)

    return write_run(tmp_path_factory.mktemp("formats"), study=SEVERAL_FORMATS, replies=reply)


def hostile_reply(spec, call):
    return usual_reply(spec, call).replace("step", HOSTILE).replace("answer", HOSTILE)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    """Panel episodes in which every text is hostile."""
    return write_run(
        tmp_path_factory.mktemp("hostile"),
        replies=hostile_reply,
        keep=lambda spec: spec.condition == "ranked",
    )


@pytest.fixture(scope="session")
def with_failures(tmp_path_factory):
    """Episodes of which one persona's fail at the judge."""
    return write_run(
        tmp_path_factory.mktemp("failures"),
        fail=lambda spec, call: spec.variant == "help_avoidant" and call.key.stage == "judge",
    )


class Branched(NamedTuple):
    parent: BuiltRun
    child: BuiltRun


@pytest.fixture(scope="session")
def branched(tmp_path_factory):
    """A run, and a branch of it that decides the simple votes by ranked ballots, in two draws.

    The last simple episode with turns is left out of the branch.
    """
    return write_branch(tmp_path_factory.mktemp("branched"), usual_reply)


@pytest.fixture(scope="session")
def hostile_branch(tmp_path_factory):
    """Such a branch in which every text is hostile."""
    return write_branch(tmp_path_factory.mktemp("hostile-branch"), hostile_reply)


def write_branch(folder, replies):
    """Run a study and a branch of it, whose calls get the parent's replies to equal prompts."""
    said: dict[tuple[str, str, str], str] = {}

    def first(spec, call):
        prompt = (spec.parent_id, str(call.key), call.request.user)
        return said.setdefault(prompt, replies(spec, call))

    study = STUDY.replace('"ranked", "cumulative", "approval"', '"ranked"')
    study = study.replace("limit = 1", "limit = 2")
    parent = write_run(folder / "parent", study=study, replies=first)
    asked = dict(said)

    def again(spec, call):
        prompt = (spec.parent_id, str(call.key), call.request.user)
        if prompt in asked:
            return asked[prompt]
        # A vote that the parent did not hold is a ranked one.
        form: Any = "ranked" if "vote" in call.key.stage else spec.condition
        return replies(replace(spec, condition=form), call)

    loaded = load_study(folder / "parent" / "study.toml")
    simple = [e for e in parent.episodes if e.condition == "simple" and e.turns]
    out = simple[-1:]
    assert len(simple) > 2
    branch = records.Branch(
        parent="built",
        parent_study=loaded.digest(),
        parent_recording=parent.run.recording_digest,
        rule="ranked",
        continuations=2,
        covered=tuple(e.episode_id for e in parent.episodes if e not in simple),
        episodes={
            e.episode_id: records.BranchedEpisode(turn=1, winners=tuple(_winners(e)))
            for e in simple
            if e not in out
        },
    )
    changed = loaded.study.model_copy(update={"name": "built-branch", "branch": branch})
    loaded = replace(loaded, study=changed)
    episodes = tuple(_episode(loaded, spec, again, lambda *_: False) for spec in loaded.grid())
    run = parent.run.model_copy(
        update={"study": loaded.settings(), "study_digest": loaded.digest(),
                "recording_digest": "1" * 64, "episodes": len(episodes)},
    )  # fmt: skip
    write_records(folder / "child", run, episodes)
    return Branched(parent, BuiltRun(folder / "child", run, episodes))


def _winners(episode):
    for turn in episode.turns:
        if turn.decision is not None:
            yield turn.decision.winner


@pytest.fixture(scope="session")
def empty_run(tmp_path_factory):
    """A run folder without an episode."""
    return write_run(tmp_path_factory.mktemp("empty"), keep=lambda spec: False)


@pytest.fixture(scope="session")
def one_episode(tmp_path_factory):
    """A run of a single panel episode with turns."""
    wanted = ("sciq", "low_confidence_novice", "approval")
    return write_run(
        tmp_path_factory.mktemp("one"),
        keep=lambda spec: (spec.benchmark, spec.variant, spec.condition) == wanted,
    )
