"""Charts of debates: every protocol on the same debates, scores by the first turn of a vote, and
other rules in a council."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import altair as alt
import polars as pl

from tutorsim.analysis.charts import figures_forms_and_colours as look
from tutorsim.analysis.pages.decorators_to_declare_tables_and_charts import Row, figure
from tutorsim.analysis.pages.words_and_safe_text import counted, extremes, spoken
from tutorsim.analysis.systems.debate.council_report_self_votes_right_winners_other_rules import (
    Councils,
)
from tutorsim.analysis.systems.debate.outcomes_under_every_protocol import family
from tutorsim.analysis.systems.debate.tables_of_protocols_recounted_on_same_debates import Evidence

_SHAPES: Final = ["circle", "square", "triangle-up", "diamond"]
_PERCENT: Final = alt.Scale(domain=[0, 100])


def _bars(frame: pl.DataFrame, of: Evidence) -> str:
    """What the bars are, where one is drawn."""
    bounds = (
        "Every outcome is known, so the least and the largest score that the recording allows are "
        "one: the dot."
        if all(one.exact for one in of.variants)
        else "A bar reaches from the least to the largest score that the recording allows; where "
        "they are one there is a dot."
    )
    if frame["lower"].is_null().all():
        return bounds
    return (
        f"{bounds} Lines are 95 % intervals over tasks. Their overlap says little, as all are of "
        "the same debates: see the paired differences."
    )


def _protocols_finding(frame: pl.DataFrame, of: Evidence) -> str:
    rows = of.variants[0].rows
    of_all = [row for row in rows if row.debates == max(row.debates for row in rows)]
    debates = counted(of_all[0].debates, "debate")
    if not all(one.exact for one in of.variants):
        return f"What the recording leaves open for each protocol, on {debates}"
    low, high = extremes(row.low for row in of_all)
    if low == high:
        return f"Every protocol decides {low:.1f} percent of the same {debates} right"
    return f"By protocol, {low:.1f} to {high:.1f} percent of the same {debates} are right"


def _draw_protocols(frame: pl.DataFrame, of: Evidence) -> look.Drawing:
    numbers = [f"{name}:Q|.1f" for name in ("least", "most", "lower", "upper")]
    told = look.tips("protocol:N", *numbers, "debates:Q")
    fewer = pl.col("debates") < pl.col("debates").max().over("variant")
    told_n = pl.format("{} (n = {})", "protocol", "debates")
    frame = frame.with_columns(protocol=pl.when(fewer).then(told_n).otherwise(pl.col("protocol")))
    base = alt.Chart().encode(
        y=alt.Y("protocol:N", sort=look.names_in(frame, "protocol"), title=None, axis=look.NAMES),
        tooltip=told,
    )
    x = alt.X("least:Q", title="right, percent", scale=_PERCENT)
    bar = base.mark_bar(height=9, opacity=0.5, color=look.ACCENT).encode(x=x, x2=alt.X2("most:Q"))
    line = base.mark_rule(color=look.PLAIN, strokeWidth=2).encode(
        x=alt.X("lower:Q"), x2=alt.X2("upper:Q")
    )
    dot = base.mark_point(filled=True, size=60, color=look.INK, opacity=1).encode(x=x)
    exact = dot.transform_filter("datum.least == datum.most")
    return look.faceted(
        *(bar, line, exact), data=frame, by="variant", order=None, width=300, step=20, spacing=30
    )


@figure(
    "protocols",
    finding=_protocols_finding,
    method="Each protocol is applied to the logged flags, final answers and ballots, without a "
    "call.",
    alternative="{variant}, {protocol}: {least:.1f} to {most:.1f}",
    draw=_draw_protocols,
    without="No debate was recorded, so there is nothing to compare.",
    bars=_bars,
)
def protocols(of: Evidence) -> Iterator[Row]:
    """Share of the same debates that every protocol decides right, in percent; a protocol that does
    not apply to all of them has its smaller n beside it. {bars}"""
    for variant in of.variants:
        for row in variant.rows:
            if row.debates:
                yield {
                    "variant": variant.name,
                    "protocol": spoken(row.rule),
                    "kind": family(row.rule),
                    "least": row.low or 0.0,
                    "most": 100.0 if row.high is None else row.high,
                    "lower": row.score.low,
                    "upper": row.score.high,
                    "debates": row.debates,
                }


def _rounds_finding(frame: pl.DataFrame, of: Evidence) -> str:
    """Lines whose slope has an interval without 0."""
    ends = [(line.slope.low, line.slope.high) for line in of.rounds]
    known = [(low, high) for low, high in ends if low is not None and high is not None]
    if not known:
        return "Whether the score falls with later votes cannot be said of so few tasks"
    lines = counted(len(known), "line")
    falls, rises = sum(high < 0 for _, high in known), sum(low > 0 for low, _ in known)
    if not falls + rises:
        return f"No change of the score with later votes is beyond chance, in any of {lines}"
    return f"With later votes the score falls in {falls} and rises in {rises} of {lines}"


def _draw_rounds(frame: pl.DataFrame, of: Evidence) -> look.Drawing:
    names = look.names_in(frame, "protocol")
    shapes = [_SHAPES[at % len(_SHAPES)] for at in range(len(names))]
    base = alt.Chart().encode(
        x=alt.X("turn:O", title="first vote after turn", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("score:Q", title="score, percent", scale=_PERCENT),
        color=look.coloured("protocol", names, look.shades(len(names)), sort=names),
    )
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(
        shape=alt.Shape("protocol:N", sort=names, scale=alt.Scale(domain=names, range=shapes)),
        tooltip=look.tips("protocol:N", "turn:O", "score:Q"),
    )
    lines = base.mark_line(opacity=0.6)
    return look.layered(lines, dots, data=look.inline(frame), width=420, height=220)


@figure(
    "rounds",
    finding=_rounds_finding,
    method="Each debate voted in every format after every turn; the recount begins later.",
    alternative="{protocol}, first vote after turn {turn}: {score:.1f}",
    draw=_draw_rounds,
    without="No debate voted in every turn, so the turns cannot be compared.",
    tasks=lambda frame, of: counted(of.rounds[0].tasks, "task"),
)
def rounds(of: Evidence) -> Iterator[Row]:
    """Mean score in percent if votes begin after so many turns; every point of a line is of the
    same debates of one variant, on {tasks}."""
    for one in of.rounds:
        for number, score in sorted(one.points.items()):
            yield {"protocol": one.name, "turn": number, "score": score, "tasks": one.tasks}


# --- Councils -------------------------------------------------------------------------------------

_PARTS: Final = {
    "keeps": "keeps the winner",
    "open": "open",
    "changes": "elects another",
    "nobody": "elects nobody",
}
"""Count of `VotesOver.kept` → the part of a bar."""


def _kept_finding(frame: pl.DataFrame, of: Councils) -> str:
    """Rules that keep every winner, and whether one is sure to elect somebody else."""
    parts = dict(frame.group_by("protocol").agg(pl.col("part").unique()).iter_rows())
    every = sum(found == [_PARTS["keeps"]] for found in parts.values())
    changed = [rule for rule, found in parts.items() if _PARTS["changes"] in found]
    some = f"{changed[0]} surely changes" if len(changed) == 1 else "some surely change"
    surely = f"{some if changed else 'none surely changes'} one"
    return f"{every} of {counted(len(parts), 'other rule')} keep every winner; {surely}"


def _draw_kept(frame: pl.DataFrame, of: Councils) -> look.Drawing:
    parts = [part for part in _PARTS.values() if part in frame["part"]]
    return look.stacked(frame, "part", title="the rule", parts=parts)


@figure(
    "kept",
    finding=_kept_finding,
    method="A ballot fixes only part of what its voter would have cast in another format; what "
    "every completion elects is sure. Votes that tie under the council's own rule are left out.",
    alternative="{protocol}, {part}: {turns}",
    draw=_draw_kept,
)
def _kept(of: Councils) -> Iterator[Row]:
    """Votes by what another rule surely does to the winner of the council's own rule; open: the
    ballots do not say. A tie stays a tie, and each vote holds the logged answers fixed."""
    for row in of.kinds[0].kept if of.kinds else ():
        for name, part in _PARTS.items():
            if row[name]:
                yield {"protocol": spoken(row["rule"]), "part": part, "turns": row[name]}


def kept(of: Councils) -> look.Figure | None:
    """The chart of other rules, in words for votes."""
    made, votes = _kept(of), {"turns": "votes", "protocol": "rule"}
    heads = votes | {"of turns": "of votes"}
    return made and replace(made, data=made.data.rename(votes), heads=heads)
