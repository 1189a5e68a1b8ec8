"""What a user says of a file of ballots, and the words that people write in heads and cells."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tutorsim.errors import UsageError

# --- Reading options -----------------------------------------------------------------------------

EVERY_VOTE: Final = ""
"""Stands for all votes, where something may be said of each."""


@dataclass(frozen=True)
class Hints:
    """How to read ballots from elsewhere. Every field is optional."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Column of the ballots table → name of that column in the file."""
    votes: tuple[str, ...] = ()
    """Columns of the file that hold the choices of one vote each."""
    stages: Mapping[str, str] = field(default_factory=dict)
    """`initial`, `final` or `tie` → name of that stage in the file."""
    protocol: str | None = None
    """Protocol of all ballots, in any of the names that `FORMATS` knows."""
    candidates: tuple[str, ...] = ()
    """Who stands in every vote, and the order of the labels A, B, C, … that raw replies use. By
    default those stand whom the ballots of a vote, or its rows, name. One name that is a column of
    the file stands for it: its cells list who stands."""
    candidates_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Vote → who stands in it, where that differs from vote to vote."""
    own: str | None = None
    """Column that names the own candidate of the row's voter; by default the one of its name."""
    own_of: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Vote, or `EVERY_VOTE` → voter → the candidate that is its own."""
    budget: int | None = None
    """Points of a cumulative ballot; by default what most ballots sum to."""
    namesakes: bool = False
    """Whether several ballots under one name in one vote come from several voters."""
    scale: tuple[float, float] | None = None
    """The worst and the best score; by default the smallest and the largest seen."""
    spelling: str | None = None
    """Whether names that differ in case, blanks or coding alone are `one`, or stand `apart`."""
    separator: str | None = None
    """What parts the names in a cell."""
    fallback_order: tuple[str, ...] | None = None
    """The order that decides ties; `None`: no order does, and a tie stays a set."""

    def order_of(self, names: Iterable[str]) -> tuple[str, ...] | None:
        """The order that decides ties, of `checked_order`; `None` without one."""
        order = self.fallback_order
        return None if order is None else checked_order(order, tuple(names))


NO_HINTS = Hints()
"""The file says everything itself."""


def checked_order(order: Sequence[str], standing: Sequence[str]) -> tuple[str, ...]:
    """An order over all candidates, those that it leaves out behind it.

    Raises `UsageError` if it names a stranger, or somebody twice.
    """
    strangers = [c for c in order if c not in standing]
    if strangers or len(set(order)) != len(order):
        raise UsageError(
            f"The order {', '.join(order)} cannot be used.",
            why=f"{strangers[0]!r} is no candidate."
            if strangers
            else "A candidate is in it twice.",
            hint=f"The candidates are {', '.join(standing)}.",
        )
    return (*order, *(c for c in standing if c not in order))


# --- Name synonyms -------------------------------------------------------------------------------

COLUMN_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    ours: tuple(words.split())
    for ours, words in {
        "episode_id": "episode election poll item question debate session case task task_id "
        "question_no motion topic prompt_id election_id poll_id item_id question_id debate_id "
        "session_id case_id",
        "turn": "round turn_no turn_number",
        "stage": "phase vote_stage step",
        "voter": "voter_id voter_name agent judge rater annotator participant user username person "
        "respondent juror model llm email member board_member reviewer shareholder name wähler "
        "mitglied",
        "candidate": "option alternative proposal nominee",
        "mass": "points score rating votes value",
        "protocol": "rule method voting_rule ballot_format format",
        "rank": "place preference position",
        "choice": "vote pick first_choice selected voted_for",
        "approvals": "approved approves approved_candidates choices",
        "ranking": "order ordering ranked_candidates preferences",
        "reply": "raw raw_reply response answer output raw_response",
        "candidates": "options alternatives labels",
        "weight": "weights voter_weight multiplicity frequency n_voters count shares",
    }.items()
}
"""Column of the reader → other names for it, the likeliest first."""

WHO_CHOSE: Final = ("voters", "users", "people", "who", "members", "participants", "supporters")
"""Columns that may list the voters of an option."""
OPTION_WORDS: Final = ("name", "text", "option", "label", "title", "emoji", "answer", "choice")
"""Columns that say which option that is."""

STAGE_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "vote_initial": ("initial", "first", "before", "pre", "initial_vote", "first_vote"),
    "vote_final": ("final", "last", "after", "post", "final_vote", "revote", "second_vote"),
    "tie_vote": ("tie", "tie_break", "tiebreak", "tie_round", "runoff", "run_off"),
}
"""Stage → other names for it."""
PLACE_WORDS: Final = {
    f"{word}{tail}": place
    for place, words in enumerate(
        (
            ("first", "1st", "gold", "prima", "primera", "erste", "premier"),
            ("second", "2nd", "silver", "seconda", "segunda", "zweite", "deuxième"),
            ("third", "3rd", "bronze", "terza", "tercera", "dritte", "troisième"),
            ("fourth", "4th"),
            ("fifth", "5th"),
        ),
        start=1,
    )
    for word in words
    for tail in (
        *("", "_choice", "_place", "_rank", "_preference"),
        *("_scelta", "_opción", "_wahl", "_choix"),
    )
}
"""Head of a column → the place whose holder stands in it."""
YES_OR_NO: Final = {
    **dict.fromkeys(("x", "yes", "y", "true", "ja", "oui", "si", "ok", "✓", "✔"), 1.0),
    **dict.fromkeys(("no", "n", "false", "nein", "non"), 0.0),
}
"""Word in a candidate's column → whether the voter approves, as a number."""

WORDS: Final[Mapping[str, frozenset[str]]] = {
    what: frozenset(words.split())
    for what, words in {
        # In place of a candidate
        "nobody": "abstain abstains abstained abstaining abstention i_abstain none nobody no_one "
        "no_vote no_answer no_preference no_opinion no_response not_voting did_not_vote "
        "undecided unsure dont_know do_not_know absent recused n/a na nan null skip skipped ? "
        "blank spoiled spoilt invalid undervote overvote tie enth enthaltung stimmenthaltung "
        "enthalten enthalt enthalt_sich enthielt_sich ungultig leer keine_angabe k_a ka "
        "keine_stimme keine_meinung nicht_abgestimmt abwesend weiss_nicht unentschieden "
        "vote_blanc bulletin_blanc blanc vote_nul bulletin_nul nul abstenu abstient sabstient "
        "sans_avis sans_opinion nsp ns/nc ne_se_prononce_pas ne_sait_pas nspp absente ausente "
        "abstencion me_abstengo se_abstiene en_blanco voto_en_blanco blanco nulo voto_nulo "
        "no_vota no_voto no_sabe astenuto astenuta astensione astiene scheda_bianca "
        "nicht_anwesend not_present nieobecny nieobecna wstrzymał_sie wstrzymuje_sie "
        "wstrzymała_sie brak_głosu zdrzel_se nepritomen assente abstencao em_branco onthouding "
        "onthouden blanco_stem ongeldig afwezig geen_mening geen_stem 棄権 白票 – —",
        # A row or column that sums others up
        "total": "total totals sum sums grand_total mean average avg median summe gesamt "
        "insgesamt mittelwert mittel durchschnitt schnitt somme moyenne suma media promedio "
        "somma totale soma gemiddelde",
        # A row below the ballots
        "note": "note notes source remark remarks legend hinweis anmerkung bemerkung quelle",
        # A column that counts or names rows
        "no candidate": "id index no nr number date time timestamp count week year month day age "
        "seed duration seconds tokens cost finished progress completed lfd nummer alter datum "
        "latency runtime minutes gender sex remark remarks comment comments notes bemerkung "
        "bemerkungen kommentar kommentare comentario comentarios observaciones remarque "
        "remarques",
        # Beside those
        "beside": "in of the s ms sec min rank score scores points rating votes row response "
        "start end recorded",
        # A column that names or numbers who filled in a row
        "row": "ballot paper email form entry member membership pupil student elector delegate "
        "shareholder respondent electeur jure votant votante vecino wahler mitglied gutachter "
        "schuler stimmzettel elettore socio kiezer",
        # A column that names people
        "person": "voter nom nombre nome teacher lehrer employee colleague staff player resident "
        "guest",
        "for or against": "for against in_favour in_favor aye nay dafür dagegen pour contre",
        "yes or no": "yes no ayes nays noes ja nein oui non sí si",
        # In place of the better of two
        "no winner": "tie both draw none",
        # In place of a candidate who is named beside
        "other": "other others andere anderer sonstige sonstiges autre otro",
        # In place of a voter's name
        "unnamed": "anonymous anonym anonyme anonimo guest",
    }.items()
}
"""What a word says → words that say so, as `plain` or `bare` writes them."""

MOTION: Final = "motion|resolution|amendment|antrag|beschluss|moción|mozione|motie"
ABSTAINS: Final = re.compile("(me_|se_|sich_)?(stimm)?(abst|enthal|asten|astien|onthoud)")
"""Words for an abstention in a vote on a motion; others stand for no answer to other questions."""
MOTIONS: Final = (
    f"{MOTION}|proposal|question|item|article|budget|frage|punkt|top |vorschlag|résolution|"
    "proposition|propuesta|voorstel|\\?$"
)


def plain(word: str) -> str:
    """A word in lower case, with one underscore for blanks and hyphens."""
    return "_".join(word.strip().casefold().replace("-", " ").replace("_", " ").split())


def bare(word: str) -> str:
    """A word as `plain` writes it, without accents, full stops and apostrophes."""
    letters = unicodedata.normalize("NFD", plain(re.sub(r"[.'’()]", "", word)))
    return "".join(char for char in letters if not unicodedata.combining(char))


def says_nobody(word: str) -> bool:
    """Whether a word in place of a candidate, or of a number, says that there is none."""
    said = bare(word)  # of hyphens nothing is left
    return bool(word.strip()) and (not said or said in WORDS["nobody"])


def spellings(names: Iterable[str], what: str, spelling: str | None) -> dict[str, str]:
    """Names that look the same but for case → one of them, where they are one: the first by name,
    if it can be one of single blanks and small letters.

    They differ in case, blanks, characters without width or the coding of the same letters.

    `spelling`: what the user says: `one`, `apart` or nothing. Raises `UsageError` if there are such
    names, and the user does not say what they are.
    """
    alike: dict[str, list[str]] = {}
    for name in sorted(set(names)):
        alike.setdefault(_as_read(name), []).append(name)
    several = [found for found in alike.values() if len(found) > 1]
    if several and spelling is None:
        raise UsageError(
            f"The {what} {', '.join(map(_shown, several[0]))} differ in case or spaces alone, or "
            "in how the same letters are coded.",
            why="They may be one or several.",
            hint="Say which: --spelling one or --spelling apart.",
        )
    if spelling == "apart":
        return {}
    tidy = [min(found, key=lambda n: (n != " ".join(n.split()), n.isupper())) for found in several]
    return {name: one for one, found in zip(tidy, several, strict=True) for name in found}


def _shown(name: str) -> str:
    """A name in quotation marks; one that is coded in an unusual way shows its codes."""
    usual = name == unicodedata.normalize("NFC", name)
    return repr(name) if usual else ascii(name)


def _as_read(name: str) -> str:
    """A name in one case, with single blanks, one coding of each letter and nothing invisible."""
    shown = (
        char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char) != "Cf"
    )
    return " ".join("".join(shown).casefold().split())


def column_named(name: str, columns: Iterable[str]) -> str | None:
    """The file's column that holds one of ours: under our name, in any case, or another word."""
    by_word: dict[str, str] = {}
    for column in columns:
        if column == name:
            return column
        by_word.setdefault(plain(column), column)
    words = (name, *COLUMN_WORDS.get(name, ()))
    return next((by_word[word] for word in words if word in by_word), None)


def named_in(word: str, known: Mapping[str, tuple[str, ...]]) -> str | None:
    """The name of ours that a word means, given other words for each; `None` for none."""
    said = plain(word)
    return next((name for name, words in known.items() if said in (name, *words)), None)
