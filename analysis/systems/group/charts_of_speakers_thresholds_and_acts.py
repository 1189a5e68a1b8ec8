"""Charts of a group's report: thresholds, and the balance of acts over a lesson."""

from collections.abc import Iterator

import altair as alt
import polars as pl

from tutorsim.analysis.charts import figures_forms_and_colours as look
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, each_row, figure
from tutorsim.analysis.pages.words_and_safe_text import listed
from tutorsim.analysis.systems.group.page_data_and_shares_of_coded_talk import (
    WINDOW,
    Evidence,
    acts_of,
    public_files,
    rolling_task_share,
)
from tutorsim.analysis.systems.group.speakers_under_other_settings import THRESHOLDS, at_thresholds

_PERCENT = alt.Axis(format=".0%")


def _lines(rows: pl.DataFrame, x: str, title: str, colour: str) -> look.Drawing:
    base = alt.Chart().encode(
        x=alt.X(x, title=title),
        y=alt.Y("share:Q", title="Share", axis=_PERCENT, scale=look.ONE),
        color=alt.Color(colour, title=None, scale=alt.Scale(range=[look.ACCENT, look.INK])),
        strokeDash=alt.StrokeDash(colour, title=None),
        shape=alt.Shape(colour, legend=None),
    )
    points = base.mark_point(filled=True, size=55)
    return look.layered(base.mark_line(), points, data=look.inline(rows), width=520, height=240)


def _most_said(rows: pl.DataFrame, of: Evidence) -> str:
    """Who speaks most, and how far that is from an even share."""
    most = rows.row(rows["share"].arg_max() or 0, named=True)
    alike = rows.filter(condition=most["condition"], share=most["share"])["who"].to_list()
    writes = "writes" if len(alike) == 1 else "each write"
    return (
        f"{listed(alike)} {writes} {100 * most['share']:.0f} % of messages under "
        f"{most['condition']}; an even share is {100 * most['even']:.0f} %"
    )


def _beside_even(rows: pl.DataFrame, of: Evidence) -> look.Drawing:
    base = alt.Chart().encode(y=alt.Y("who:N", sort=None, title=None, axis=look.NAMES))
    bars = base.mark_bar(height=14, color=look.ACCENT).encode(
        x=alt.X("share:Q", title="share of messages", axis=_PERCENT, scale=look.ONE),
        tooltip=look.tips("condition:N", "who:N", "share:Q|.1%", "messages:Q"),
    )
    even = alt.Chart().mark_rule(color=look.INK, strokeDash=[4, 3]).encode(x=alt.X("even:Q"))
    return look.faceted(bars, even, data=rows, by="condition")


@figure(
    "speakers",
    finding=_most_said,
    method="Messages of the log, silences left out.",
    alternative="{condition}, {who}: {share:.2f}",
    draw=_beside_even,
)
def speakers(of: Evidence) -> Iterator[Row]:
    """Who writes the messages of lessons; the dashed line is an even share of all who may."""
    for condition, some in of.conditions.items():
        said = [event.who for one in some for event in one.events if event.kind == "message"]
        names = (*some[0].agents, "learner")
        for who in names if said else ():
            yield {
                "condition": condition,
                "who": who,
                "share": said.count(who) / len(said),
                "even": 1 / len(names),
                "messages": said.count(who),
            }


def _ends(rows: pl.DataFrame, of: Evidence) -> str:
    here = rows.filter(pl.col("source") == "this run").rows()
    (first, _, most), (last, _, least) = here[0], here[-1]
    return (
        f"With a threshold of {first} somebody speaks in {100 * most:.0f} % of cycles, with "
        f"{last} in {100 * least:.0f} %"
    )


@figure(
    "thresholds",
    finding=_ends,
    method="Recounted exactly from logged scores with the run's other settings.",
    alternative=each_row(lambda r: f"{r['source']} at {r['threshold']}: {100 * r['share']:.0f} %"),
    draw=lambda rows, of: _lines(rows, "threshold:Q", "Threshold", "source:N"),
    without="No cycle has scores, so no threshold can be moved.",
    files=lambda rows, of: public_files(of, "Public files: the authors' 610 turns"),
)
def thresholds(of: Evidence) -> Iterator[Row]:
    """Share of logged cycles with a speaker, everything said before held fixed.{files}"""
    here = at_thresholds(of.cycles, of.run)["share"].to_list()
    files = [
        of.printed_share("turns_with_speaker", public=True, threshold=float(text))
        for text in THRESHOLDS
    ]
    for source, shares in (("this run", here), ("public files", files)):
        for text, share in zip(THRESHOLDS, shares, strict=True):
            if share is not None and here[0] is not None:
                yield {"threshold": float(text), "source": source, "share": share}


def _mean_shares(rows: pl.DataFrame, of: Evidence) -> str:
    means = rows.group_by("condition", maintain_order=True).agg(pl.col("share").mean())
    said = ", ".join(f"{name} {100 * share:.0f} %" for name, share in means.iter_rows())
    return f"Of the acts in a window, those about the task are on average: {said}"


@figure(
    "balance",
    finding=_mean_shares,
    method="Bales' categories 4 to 9 are about the task.",
    alternative=each_row(lambda r: f"{r['condition']} at {r['place']}: {100 * r['share']:.0f} %"),
    draw=lambda rows, of: _lines(rows, "place:Q", "Place in the lesson", "condition:N"),
    without="No lesson has enough coded messages for a rolling window.",
    window=WINDOW,
)
def balance(of: Evidence) -> Iterator[Row]:
    """Share of task acts among every {window} coded messages in a row, by the place of the window
    in its lesson (0 first, 1 last, in tenths), mean over lessons; coder 1. The rest is
    social-emotional."""
    rows = []
    for lesson in of.lessons:
        shares = rolling_task_share(acts_of(lesson, "coder_1"))
        last = max(len(shares) - 1, 1)
        rows += [(lesson.condition, round(i / last, 1), share) for i, share in enumerate(shares)]
    schema = {"condition": pl.String(), "place": pl.Float64(), "share": pl.Float64()}
    means = (
        pl.DataFrame(rows, schema=schema, orient="row")
        .group_by("condition", "place", maintain_order=True)
        .agg(pl.col("share").mean())
        .sort("condition", "place")
    )
    yield from means.iter_rows(named=True)
