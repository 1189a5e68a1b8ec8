"""Titles say what the data say: with ties, with nothing, with few."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest

from tutorsim.analysis.charts.figures_forms_and_colours import spec
from tutorsim.analysis.charts.svg_and_png_for_phone_and_dark_mode import drawn, to_page_svg
from tutorsim.analysis.statistics.intervals_and_tests import Estimate, Interval, NotEstimable
from tutorsim.analysis.systems.debate.charts_of_protocols_vote_start_councils import protocols
from tutorsim.analysis.systems.debate.outcomes_under_every_protocol import ProtocolRow
from tutorsim.analysis.systems.panel import charts_of_steps_shifts_noise_pivots_labels as votes
from tutorsim.analysis.systems.panel.charts_of_fallback_orders_and_rules import (
    agreement_figure,
    identification_figure,
    orders_figure,
    wins_figure,
)
from tutorsim.analysis.systems.panel.charts_of_steps_shifts_noise_pivots_labels import (
    decided_figure,
    movement_figure,
    noise_figure,
)
from tutorsim.analysis.systems.panel.charts_of_students import personas_figure, scores_figure


def frame(columns, *rows):
    return pl.DataFrame(list(rows), schema=columns.split(), orient="row")


def drawable(figure):
    figure.chart.to_dict(validate=True)  # raises where it breaks Vega-Lite's schema
    made = spec(figure, provenance="stand-in (test)", titled=False)
    [drawing] = drawn([made])
    assert "<path" in to_page_svg(drawing, name=figure.name, label=figure.finding)
    return figure.finding


def drawn_of(declared, rows, of=None):
    """A declared figure of stated rows."""

    def stated(of):
        return rows.iter_rows(named=True)

    stated.__doc__ = declared.rows.__doc__
    return replace(declared, rows=stated)(of)


HELD = "As logged; nothing is recounted."
NO_WINNER = "Nothing was put to a vote"
OF = SimpleNamespace(
    held=HELD, unordered=False, no_winner=NO_WINNER, unit="turn", once=False, tie_rounds=True
)


def spans(*rows, turns=30):
    """The figure of candidates' wins: as logged, fewest, most, by lot, under every order."""
    names = ["candidate", "logged", "least", "most", "expected", "robust"]
    found = [SimpleNamespace(**dict(zip(names, row, strict=True))) for row in rows]
    order = tuple(one.candidate for one in found)
    table = SimpleNamespace(candidates=found, turns=turns, many="2", logged_order=order)
    return wins_figure(SimpleNamespace(orders=table, unordered=False, unit="turn"))


@pytest.mark.costly
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("a", 5, 2, 8, 5.0, 2), ("b", 3, 3, 4, 3.5, 3)],
         "The order decides most about a: 2 to 8 wins in 30 turns"),
        ([("a", 5, 5, 8, 6.5, 5), ("b", 3, 0, 3, 1.5, 0)],
         "The order decides most about a and b: 3 wins each of 30 turns"),
        ([("a", 5, 5, 5, 5.0, 5)], "No candidate's wins depend on the fallback order"),
    ],
    ids=["widest", "tie", "none"],
)  # fmt: skip
def test_the_widest_span_is_named_with_its_ends_and_equal_ones_are_a_tie(rows, said):
    assert drawable(spans(*rows)) == said


def orders_of(names, changed, turns=30):
    """The figure of orders, of which all but the logged one change so many turns."""
    rows = [
        SimpleNamespace(
            order=order,
            wins={c: i for i, c in enumerate(order)},
            changed=0 if order == tuple(names) else changed,
        )
        for order in itertools.permutations(names)
    ]
    table = SimpleNamespace(
        listed=rows, turns=turns, logged_order=tuple(names), orders=len(rows), candidates=names
    )
    return orders_figure(SimpleNamespace(orders=table, unit="turn"))


@pytest.mark.costly
def test_orders_that_change_nothing_are_said_to():
    found = orders_of("abc", 0)
    assert drawable(found) == ("No order would change a winner: all 6 elect the same in every turn")


@pytest.mark.costly
def test_the_logged_order_comes_first_and_each_order_has_a_row():
    found = orders_of("abcd", 3)
    rows = found.data.get_column("row").unique(maintain_order=True).to_list()
    assert rows[0] == "► a › b › c › d"
    assert len(rows) == 24
    assert drawable(found).endswith("up to 10 % of 30 turns")


def test_orders_of_many_candidates_share_rows_by_their_beginning():
    """120 orders of 5: rows for the 20 beginnings of two, each a mean over 6 orders."""
    found = orders_of("abcde", 3)
    rows = found.data.get_column("row").unique(maintain_order=True).to_list()
    assert rows[0] == "► a › b › …"
    assert len(rows) == 20
    assert "averages" in found.caption
    drawable(found)


@pytest.mark.parametrize(
    ("vote", "tie_round", "fallback", "said"),
    [
        (30, 0, 0, "No final vote was tied in 30 turns"),
        (20, 10, 0, "The final vote tied in 33 % of 30 turns; every tie was voted away"),
        (20, 0, 10, "The final vote tied in 33 % of 30 turns; the order decided all of them"),
        (5, 3, 2,
         "The final vote tied in 5 of 10 turns; the fallback order had to decide 2 of these 5"),
    ],
)  # fmt: skip
def test_ties_are_told_by_what_broke_them(vote, tie_round, fallback, said):
    by = {"vote": vote, "tie_round": tie_round, "fallback": fallback}
    row = SimpleNamespace(protocol="simple", decided_by=by)
    found = decided_figure(SimpleNamespace(**vars(OF), diagnostics=[row]))
    assert drawable(found) == said


def test_movement_is_set_beside_chance_only_where_there_is_enough():
    cells = frame("protocol leader winner turns", ("simple", "a", "a", 10), ("simple", "a", "b", 5))
    chance = [SimpleNamespace(flip_expected=0.5, turns=1)]
    of = SimpleNamespace(
        candidates=("a", "b"), chance=chance, unordered=False, held=HELD, unit="turn"
    )
    few = drawn_of(movement_figure, cells, of)
    assert drawable(few) == "The winner is not who led the first vote in 5 of 15 turns"
    many = drawn_of(movement_figure, cells.with_columns(turns=pl.Series([15, 5])), of)
    assert drawable(many).endswith("25 % of 20 turns; independent votes would give 50 %")


def noise(turns, *values):
    return frame(
        "protocol quantity source turns value low high",
        *(
            ("simple", quantity, source, turns, value, None, None)
            for quantity in ("flip", "leader", "shift")
            for source, value in zip(("logged", "re-asked"), values, strict=True)
        ),
    )


def test_what_was_logged_is_told_apart_from_what_was_asked_again():
    few = drawn_of(noise_figure, noise(7, 3 / 7, 0.25))
    assert drawable(few) == (
        "Leaders of the two votes differ in 3 of 7 turns as logged, where re-asking alone gives "
        "1.8 on average"
    )
    many = drawn_of(noise_figure, noise(20, 0.5, 0.25))
    assert drawable(many).endswith("50 % of 20 turns as logged; re-asking alone gives 25 %")
    assert "simple, leader, logged: 0.50; simple, leader, re-asked: 0.25" in many.alternative
    assert "Lines:" not in many.caption  # no interval is known, so no line is drawn
    known = many.data.with_columns(low=pl.lit(0.1), high=pl.lit(0.9))
    assert "Lines: 95 % intervals" in drawn_of(noise_figure, known).caption


def test_bounds_and_intervals_are_explained_where_they_are_drawn():
    def caption(score, exact=4, high=50.0):
        row = ProtocolRow("simple", 4, 4, exact, 4 - exact, 0, 50.0, high, score, 1.0, 2.0, 0)
        variant = SimpleNamespace(name="", rows=[row], exact=exact == row.debates)
        return protocols(SimpleNamespace(variants=[variant])).caption

    few = Estimate(50.0, 4, NotEstimable("too few tasks"))
    assert caption(few).endswith("the recording allows are one: the dot.")
    assert "Lines are 95 % intervals" in caption(Estimate(50.0, 4, Interval(20.0, 80.0, "bca")))
    left_open = caption(NotEstimable("open"), exact=3, high=75.0)
    assert "A bar reaches from the least to the largest score that the recording" in left_open


def agreement(*rows):
    return frame("logged target turns lower upper point lower_open upper_open projection", *rows)


def test_agreement_is_an_interval_over_the_other_protocols():
    """(10 × 0.2 + 30 × 0.6) / 40 = 0.5 and (10 × 1 + 30 × 0.8) / 40 = 0.85; Copeland is no
    protocol, and the ranked ballots' own count says nothing."""
    rows = agreement(
        ("ranked", "ranked", 30, 1.0, 1.0, 1.0, 1.0, 1.0, "as cast"),
        ("simple", "ranked", 10, 0.2, 1.0, 0.9, 0.1, 1.0, "x"),
        ("ranked", "simple", 30, 0.6, 0.8, 0.7, 0.6, 0.8, "x"),
        ("ranked", "copeland", 30, 0.0, 0.0, 0.0, 0.0, 0.0, "x"),
    )
    found = drawn_of(agreement_figure, rows, OF)
    assert drawable(found).startswith("Counted under another protocol, 50 % to 85 % of winners")


def test_an_agreement_that_the_ballots_settle_is_one_number():
    settled = agreement(("ranked", "simple", 30, 0.6, 0.6, 0.6, 0.6, 0.6, "first place"))
    found = drawn_of(agreement_figure, settled, OF)
    assert drawable(found) == "Counted under another protocol, 60 % of winners stay"


def test_identification_counts_pairs_without_any_certain_winner():
    open_ = [("simple", "ranked", possible, 10, 0.5) for possible in ("2", "not settled")]
    rows = frame("logged target possible turns share", ("ranked", "simple", "1", 20, 1.0), *open_)
    found = drawn_of(identification_figure, rows, OF)
    assert drawable(found) == (
        "The ballots name one winner under another protocol in 50 % of cases, and in none for "
        "1 of 2 pairs"
    )


def test_protocols_counted_under_no_other_say_nothing_of_them():
    own = ("ranked", "ranked", 20, 1.0, 1.0, 1.0, 1.0, 1.0, "as cast")
    found = drawn_of(agreement_figure, agreement(own), OF)
    assert found.finding == "No protocol was recounted under another"
    alone = frame("logged target possible turns share", ("ranked", "ranked", "1", 20, 1.0))
    assert drawn_of(identification_figure, alone, OF).finding == (
        "Each protocol is counted on its own ballots only, so every winner is certain"
    )


def labels(*ps):
    rows = [
        (f"protocol {i}", label, 0.6, 0.5, p, p, 40) for i, p in enumerate(ps) for label in "AB"
    ]
    return frame("protocol label share even p_label p ballots", *rows)


@pytest.mark.parametrize(
    ("ps", "said"),
    [
        (
            (0.4, 0.05),
            "What labels do to votes is within chance here; a label may still shift its draft's "
            "share by up to 25 points of 100",  # 10, and 1.96 · 100 · √(0.6 · 0.4 / 40)
        ),
        (
            (0.04, 0.5),
            "In 1 of 2 protocols (protocol 0) a draft's label shifts its share of the votes "
            "(p < 0.05)",
        ),
        (
            (0.04, 0.5, 0.03),
            "In 2 of 3 protocols (protocol 0 and protocol 2) a draft's label shifts its share of "
            "the votes (p < 0.05)",
        ),
        (
            (0.04, 0.001),
            "Under every protocol a draft's label shifts its share of the votes (p < 0.05)",
        ),
    ],
)
def test_label_effects_are_claimed_only_below_the_level(ps, said):
    figure = drawn_of(votes.labels_figure, labels(*ps), OF)
    assert drawable(figure) == said
    [rows] = figure.chart.to_dict()["datasets"].values()
    assert [row["marked"] for row in rows] == [p < 0.05 for p in ps for _ in "AB"]


def test_a_margin_that_no_ballot_can_move_is_drawn_and_not_counted_as_one():
    rows = frame("protocol margin turns", ("simple", 1, 4), ("simple", None, 2))
    found = drawable(drawn_of(votes.margins_figure, rows, OF))
    assert found == "One ballot cast otherwise would have changed the winner in 4 of 6 turns"


def pivotal(*rows, order=()):
    """The figure of voters' turns, and of those in which their ballots decide."""
    columns = "protocol voter turns pivotal_set pivotal low high"
    rows = [(*row, 0.1, 0.5) for row in rows]
    of = SimpleNamespace(
        pivotality=frame(columns, *rows), candidates=order, unordered=False, held=HELD, unit="turn",
        no_winner=NO_WINNER,
    )  # fmt: skip
    return votes.pivotal_figure(of)


def test_pivotal_voters_are_compared_only_where_there_are_enough_ballots():
    row = ("simple", "a", 10, 1, 2)
    assert drawable(pivotal(row)) == "Pivotal voters in 10 ballots, too few for a comparison"
    many = pivotal(row, ("simple", "b", 10, 1, 4), order=("b", "a"))
    assert drawable(many).startswith(
        "Dropping one voter's ballot changes the winner in 20 % to 40 %"
    )


def test_of_many_voters_only_the_busiest_are_drawn_and_the_caption_says_so():
    rows = [("simple", f"v{i:02d}", 10 + i, 1, 2) for i in range(20)]
    found = pivotal(*rows, order=("v19", "v00"))
    assert found.data.get_column("voter").to_list() == [f"v{i:02d}" for i in range(8, 20)]
    assert found.caption.startswith("The 12 voters with most ballots, 8 others left out.")
    drawable(found)


STUDY = SimpleNamespace(max_turns=3, personas=("a_b", "c", "d", "e"), conditions=("simple",))
RUN = SimpleNamespace(panel=STUDY)


@pytest.mark.costly
def test_scores_are_compared_only_where_there_are_enough_episodes():
    columns = "benchmark condition turn mean lower upper n running"
    rows = [("sciq", c, t, 0.2 + t / 10 * k, None, None, 9, 9)
            for k, c in enumerate(("baseline", "simple"), 1) for t in (0, 1)]  # fmt: skip
    grid = {"tasks": {"sciq": 2}}
    of = SimpleNamespace(source=SimpleNamespace(run=RUN), grid=grid, held=HELD)
    few = drawn_of(scores_figure, frame(columns, *rows), of)
    assert drawable(few) == "Judge scores by turn in 18 episodes, too few for a comparison"
    assert "over 2 tasks: too few tasks, so that there are none" in few.caption
    assert " line" not in few.caption  # the chart has points and bars
    more = drawn_of(scores_figure, frame(columns, *rows).with_columns(n=pl.lit(12)), of)
    assert drawable(more).endswith("moved by +0.10 to +0.20 across conditions")


def personas(*rows):
    """The figure of personas' successes of so many episodes."""
    cells = [(*row, row[3] / row[4] if row[4] else None) for row in rows]
    data = frame("benchmark persona condition successes n rate", *cells)
    of = SimpleNamespace(source=SimpleNamespace(run=RUN), held=HELD)
    return drawn_of(personas_figure, data, of)


def test_equal_rates_name_no_best_persona():
    found = personas(("sciq", "a_b", "simple", 5, 10), ("sciq", "c", "simple", 5, 10))
    assert drawable(found) == "Every persona succeeds in 50 % of its episodes"


def test_personas_that_share_a_rate_are_named_together():
    found = personas(
        ("sciq", "a_b", "simple", 5, 10),
        ("sciq", "c", "simple", 5, 10),
        ("sciq", "d", "simple", 8, 10),
        ("sciq", "e", "simple", 0, 0),
    )
    assert drawable(found) == "Success runs from 50 % (a b and c) to 80 % (d) of episodes"


EMPTY = pl.DataFrame()
UNASKED = SimpleNamespace(no_winner=NO_WINNER, noise=NotEstimable("each vote was asked for once"))


@pytest.mark.parametrize(
    "figure",
    [
        orders_of("", 0, turns=0),
        spans(turns=0),
        pivotal(),
        *(
            drawn_of(figure, EMPTY, UNASKED)
            for figure in (
                *(decided_figure, movement_figure, noise_figure, votes.margins_figure),
                *(agreement_figure, identification_figure, scores_figure, personas_figure),
            )
        ),
    ],
    ids=lambda figure: figure.name,
)
def test_without_data_there_is_a_reason_and_no_chart(figure):
    assert figure.chart is None
    assert figure.finding.startswith(("No ", "Nothing "))


def test_without_known_labels_the_reason_is_said(monkeypatch):
    unknown = [NotEstimable("no ballot has a known label")]
    monkeypatch.setattr(votes, "label_positions", lambda source, **_: unknown)
    found = votes.labels_figure(SimpleNamespace(source=None))
    assert found.chart is None
    assert found.finding == "No effect of labels can be estimated: no ballot has a known label."


def test_titles_are_called_otherwise_and_data_keep_their_names():
    drawn = spans(("turns", 5, 2, 8, 5.0, 2), ("b", 3, 3, 4, 3.5, 3), turns=30)
    made = replace(drawn, heads={"wins": "votes won", "robust": "safe", "turns": "votes"}).vega_lite
    text = str(made)
    assert "'title': 'votes won'" in text
    assert "'candidate': 'turns'" in text
    assert "'field': 'robust'" in text
    assert "'title': 'wins'" not in text
