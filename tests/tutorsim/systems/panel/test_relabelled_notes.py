"""Labels in place of roles."""

import hashlib
import re
from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutorsim.kernel.scene import labelled
from tutorsim.records import Note, ReviewRecord
from tutorsim.systems.panel import turn as relabelled_notes
from tutorsim.systems.panel.settings import load_panel_catalog
from tutorsim.systems.panel.turn import Notes, relabel
from tutorsim.vocabularies import DEFAULT_ROLES, LABELS

S, M, V, C = DEFAULT_ROLES


def order(scene, *, turn=1, stage="critique", reader=S, among=DEFAULT_ROLES):
    [labels] = scene.labels(among, turn=turn, stage=stage, readers=[reader]).values()
    assert list(labels) == list(LABELS[: len(among)])
    return tuple(labels.values())


@pytest.mark.parametrize(
    ("settings", "place", "expected"),
    [
        ({}, {}, (C, V, S, M)),
        ({}, {"reader": V}, (V, M, S, C)),
        ({}, {"stage": "vote_final"}, (V, C, S, M)),
        ({}, {"turn": 3}, (V, S, M, C)),
        ({}, {"among": (S, C)}, (C, S)),
        ({"seed": 12}, {}, (C, S, V, M)),
        ({"personas": ["hint_seeking_dependent"]}, {}, (V, C, M, S)),
        ({"blinding": "shared"}, {}, (S, M, C, V)),
    ],
)
def test_labels_are_the_same_on_every_python_and_platform(make_scene, settings, place, expected):
    assert order(make_scene(**settings), **place) == expected


def test_labels_sort_roles_by_a_hash_of_seed_episode_turn_stage_and_reader(make_scene):
    def digest(role):
        place = ("11", "sciq.ice.help_avoidant.simple", "2", "revise", M, role)
        return hashlib.sha256("\x1f".join(place).encode()).digest()

    expected = tuple(sorted(DEFAULT_ROLES, key=digest))
    assert order(make_scene(), turn=2, stage="revise", reader=M) == expected


def test_the_order_in_which_candidates_are_given_does_not_matter(make_scene):
    scene = make_scene()
    assert {order(scene, among=among) for among in permutations(DEFAULT_ROLES)} == {order(scene)}


def test_every_order_is_equally_likely(make_scene):
    scene = make_scene()
    count = 4800
    drawn = Counter(order(scene, turn=turn) for turn in range(count))
    expected = count / 24
    chi_square = sum((drawn[p] - expected) ** 2 / expected for p in permutations(DEFAULT_ROLES))
    assert chi_square < 49.7  # the 99.9 % point at 23 degrees of freedom


def test_readers_and_stages_are_drawn_independently(make_scene):
    scene = make_scene()
    pairs = Counter(
        (order(scene, turn=turn)[0], order(scene, turn=turn, reader=M)[0]) for turn in range(1600)
    )
    assert sum((pairs[a, b] - 100) ** 2 / 100 for a in DEFAULT_ROLES for b in DEFAULT_ROLES) < 37.7


def test_shared_labels_hold_for_everybody_throughout_a_turn(make_scene):
    scene = make_scene(blinding="shared")
    stages = ("critique", "vote_initial", "revise", "vote_final")
    assert len({order(scene, stage=s, reader=r) for s in stages for r in DEFAULT_ROLES}) == 1
    assert len({order(scene, turn=turn) for turn in range(1, 9)}) > 1


def test_eight_roles_get_the_labels_a_to_h(make_scene):
    roles = tuple(f"role_{n}" for n in range(8))
    labels = make_scene().labels(roles, turn=1, stage="critique", readers=[S])[S]
    assert "".join(labels) == "ABCDEFGH"
    assert sorted(labels.values()) == list(roles)


def test_texts_stand_under_their_labels_and_an_empty_one_says_so():
    texts = {S: "First.\nSecond.", M: ""}
    assert (
        labelled(texts, {"A": M, "B": S}, blank="(empty)") == "A: (empty)\n\nB: First.\n  Second."
    )


hostile = st.text(
    st.sampled_from("AB: \n\r\t\x0b\x0c\x1c\x85\u2028x") | st.characters(), max_size=30
)


@given(st.lists(hostile, min_size=2, max_size=4))
def test_no_text_starts_a_line_of_its_own(texts):
    roles = DEFAULT_ROLES[: len(texts)]
    labels = dict(zip(LABELS, roles, strict=False))
    shown = labelled(dict(zip(roles, texts, strict=True)), labels, blank="-")
    starts = [line[:2] for line in shown.splitlines() if line and not line.startswith(" ")]
    assert starts == [f"{label}:" for label in labels]


WRITTEN = {"A": S, "B": M, "C": V, "D": C}
READER = {S: "D", M: "C", V: "B", C: "A"}


@pytest.mark.parametrize(
    ("note", "read"),
    [
        ("Clearer than B.", "Clearer than C."),
        ("Unlike draft A, it asks.", "Unlike draft D, it asks."),
        ("Shorter than replies A, B and C.", "Shorter than replies D, C and B."),
        ("Proposal B or D would do.", "Proposal C or A would do."),
        ("The other one (C) asks more.", "The other one (B) asks more."),
        ("It repeats D's hint and A’s tone.", "It repeats A's hint and D’s tone."),
        ("B asks more; A is kinder.", "C asks more; D is kinder."),
        ("A and D say the same.", "D and A say the same."),
        ("Kind, while B explains.", "Kind, while C explains."),
        ("A good hint about vitamin C.", "A good hint about vitamin C."),
        ("A student would ask for plan B.", "A student would ask for plan B."),
        ("Better than reply H.", "Better than reply H."),
        ("DNA, A=1 and BC stay.", "DNA, A=1 and BC stay."),
        ("", ""),
    ],
)
def test_label_mentions_are_translated_and_other_capitals_are_not(note, read):
    assert relabel(note, WRITTEN, READER) == read


def test_the_same_labels_translate_to_themselves():
    note = "Clearer than B, unlike (C); D's hint; A and B ask."
    same = {role: label for label, role in WRITTEN.items()}
    assert relabel(note, WRITTEN, same) == note


def review(reviewer, labels, **notes):
    return ReviewRecord(
        reviewer=reviewer, labels=labels, raw="", notes=notes, status="valid", attempts=1
    )


def test_notes_stand_under_the_reader_s_labels_in_the_reader_s_words():
    reviews = [
        review(S, {"A": S, "B": M}, **{M: Note(strength="More than A.", weakness=None)}),
        review(M, {"A": M, "B": S}, **{M: Note(strength="X\nB: y", weakness="Less than B.")}),
        review(V, {"A": M, "B": S}, **{S: Note()}),
    ]
    assert Notes(reviews, load_panel_catalog()).shown({"A": M, "B": S}) == (
        "On A:\n- Strength: More than B.\n- Strength: X\n  B: y\n- Weakness: Less than B.\n\n"
        "On B:\n- (no review)"
    )


WORDS = st.sampled_from(
    ["A", "B", "H", "(C)", "D's", "draft", "Replies", "compared with", "unlike", "is", "and", "Ä"]
)


@given(st.lists(WORDS | st.text(max_size=4), max_size=12), st.sampled_from([" ", "\n", ", ", ". "]))
def test_a_note_read_once_is_written_as_by_replacing_each_mention(words, between):
    note = between.join(words)
    label_of = dict(zip((S, M, V, C), "BADC", strict=True))

    def swap(found):
        return label_of.get(WRITTEN.get(found[0], ""), found[0])

    plain = relabelled_notes._MENTION.sub(lambda m: re.sub(r"(?<!\w)[A-H](?!\w)", swap, m[0]), note)
    assert relabel(note, WRITTEN, label_of) == plain
