"""Colours can be told apart by everybody, on paper and on a dark screen."""

import math
from itertools import combinations

import pytest

from tutorsim.analysis.charts.figures_forms_and_colours import (
    DARK,
    DEEPEST,
    TOKENS,
    condition_colors,
    role_colors,
    shades,
)
from tutorsim.vocabularies import CONDITIONS, DEFAULT_ROLES

# Machado, Oliveira and Fernandes (2009), severity 1: linear RGB as seen.
SEEN = {
    "typical": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
               (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
               (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
               (0.004733, 0.691367, 0.303900)),
}  # fmt: skip


def linear(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def contrast(a, b):
    light = [0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (linear(a), linear(b))]
    return (max(light) + 0.05) / (min(light) + 0.05)


def lab(color, eyes):
    seen = [
        max(0.0, min(1.0, sum(w * c for w, c in zip(row, linear(color), strict=True))))
        for row in SEEN[eyes]
    ]
    to_xyz = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    white = (0.9505, 1.0, 1.089)
    x, y, z = (
        (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116)
        for t in (
            sum(w * c for w, c in zip(row, seen, strict=True)) / n
            for row, n in zip(to_xyz, white, strict=True)
        )
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("eyes", SEEN)
@pytest.mark.parametrize("colors", [TOKENS, DARK], ids=["paper", "dark"])
def test_the_four_default_roles_stay_apart_under_colour_blindness(eyes, colors):
    """A difference of 12 in CIE Lab is plain to see for marks of the charts' size."""
    four = [colors[f"role{i}"] for i in (1, 2, 3, 4)]
    assert min(math.dist(lab(a, eyes), lab(b, eyes)) for a, b in combinations(four, 2)) > 12


@pytest.mark.parametrize("colors", [TOKENS, DARK], ids=["paper", "dark"])
def test_marks_and_text_stand_out_from_the_page(colors):
    """WCAG 2: 3 to 1 for marks, 4.5 to 1 for text."""
    page = colors["paper"]
    marks = [name for name in colors if name.startswith(("role", "condition", "accent"))]
    assert {
        name: contrast(colors[name], page) for name in marks if contrast(colors[name], page) < 3
    } == {}
    assert contrast(colors["ink"], page) > 4.5
    assert contrast(colors["muted"], page) > 4.5


@pytest.mark.parametrize("colors", [TOKENS, DARK], ids=["paper", "dark"])
def test_text_on_shades_can_be_read(colors):
    assert contrast(colors["shade1"], colors["paper"]) > 4.5
    for i in (3, 4, 5, 6, 7, 8):
        assert contrast(colors[f"shade{i}"], colors["ink"]) > 3


@pytest.mark.parametrize("colors", [TOKENS, DARK], ids=["paper", "dark"])
def test_a_number_in_the_deepest_cell_can_be_read(colors):
    for name in ("accent", "loss"):
        parts = zip(*(bytes.fromhex(colors[one][1:]) for one in (name, "paper")), strict=True)
        mixed = [round(DEEPEST * cell + (1 - DEEPEST) * page) for cell, page in parts]
        assert contrast("#" + bytes(mixed).hex(), colors["ink"]) > 4.5


def test_a_role_keeps_its_colour_in_any_company():
    alone = role_colors(DEFAULT_ROLES)
    assert role_colors(("coach", "motivation", "scaffolding"))[1:] == [alone[2], alone[0]]
    assert role_colors(("coach",)) == [alone[0]]
    assert role_colors("abcd") == alone  # those of paper


def test_eight_candidates_have_eight_colours_and_the_rest_are_grey():
    names = [f"candidate {i}" for i in range(10)]
    colors = role_colors(names)
    assert len(set(colors[:8])) == 8
    assert colors[8] == colors[9] == TOKENS["plain"]


def test_every_condition_has_its_own_colour_and_a_stranger_is_grey():
    assert len(set(condition_colors(CONDITIONS))) == len(CONDITIONS)
    assert condition_colors(["roll of dice"]) == [TOKENS["plain"]]


def test_no_two_names_share_a_colour_on_paper_so_that_each_can_become_a_variable():
    assert len(set(TOKENS.values())) == len(TOKENS)


@pytest.mark.parametrize("count", range(9))
def test_shades_are_as_many_as_asked_for_and_all_different(count):
    assert len(set(shades(count))) == count
