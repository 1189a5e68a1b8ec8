"""Names that people give to columns, protocols and stages, and ours for them."""

from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["COLUMN_WORDS", "column_named", "plain", "protocol_named", "stage_named"]

COLUMN_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "episode_id": (
        *("episode", "election", "poll", "item", "question", "debate", "session", "case"),
        *("election_id", "poll_id", "item_id", "question_id", "debate_id", "session_id", "case_id"),
    ),
    "turn": ("round", "turn_no", "turn_number"),
    "stage": ("phase", "vote_stage", "step"),
    "voter": (
        *("voter_id", "voter_name", "agent", "judge", "rater", "annotator", "participant"),
        *("user", "person", "respondent", "juror"),
    ),
    "candidate": ("option", "alternative", "proposal", "nominee"),
    "mass": ("points", "score", "votes", "value", "weight"),
    "protocol": ("rule", "method", "voting_rule", "ballot_format", "format"),
    "rank": ("place", "preference", "position"),
    "choice": ("vote", "pick", "first_choice", "selected", "voted_for"),
    "approvals": ("approved", "approves", "approved_candidates", "choices"),
    "ranking": ("order", "ordering", "ranked_candidates", "preferences"),
    "reply": ("raw", "raw_reply", "response", "answer", "output", "raw_response"),
    "candidates": ("options", "alternatives", "labels"),
}
"""Column of the reader → other names for it, the likeliest first."""

_PROTOCOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "simple": ("plurality", "single", "single_choice", "one_choice", "fptp", "majority"),
    "ranked": ("ranking", "rank", "ranks", "ordinal", "rcv", "irv", "preferential", "borda"),
    "cumulative": ("points", "point", "budget", "distribution"),
    "approval": ("approve", "approvals", "multiple_choice", "multi"),
    "rich": (),
}
_STAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "vote_initial": ("initial", "first", "before", "pre", "initial_vote", "first_vote"),
    "vote_final": ("final", "last", "after", "post", "final_vote", "revote", "second_vote"),
    "tie_vote": ("tie", "tie_break", "tiebreak", "tie_round", "runoff", "run_off"),
}


def plain(word: str) -> str:
    """A word in lower case, with one underscore for blanks and hyphens."""
    return "_".join(word.strip().casefold().replace("-", " ").replace("_", " ").split())


def column_named(name: str, columns: Iterable[str]) -> str | None:
    """The file's column that holds one of ours: under our name, in any case, or another word."""
    by_word: dict[str, str] = {}
    for column in columns:
        if column == name:
            return column
        by_word.setdefault(plain(column), column)
    words = (name, *COLUMN_WORDS.get(name, ()))
    return next((by_word[word] for word in words if word in by_word), None)


def protocol_named(word: str) -> str | None:
    """Our name of a protocol; `None` for an unknown word."""
    return _named(word, _PROTOCOLS)


def stage_named(word: str) -> str | None:
    """Our name of a stage; `None` for an unknown word."""
    return _named(word, _STAGES)


def _named(word: str, known: Mapping[str, tuple[str, ...]]) -> str | None:
    said = plain(word)
    return next((name for name, words in known.items() if said in (name, *words)), None)
