"""One run with something of everything, built once: it takes seconds."""

from typing import Any

import pytest

from tests.analysis.made import report_of
from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn, with_retest
from tutorsim.analysis.pages.document_as_html_with_packed_episodes import to_html

BUILT: dict[str, Any] = {}


@pytest.fixture
def rich_source():
    """Four episodes: a fallback that flipped, a tie round, an abstention, a single tutor.

    The first vote of the first was asked again.

    1. simple, scaffolding and misconception 2 : 2, again 2 : 2 in the tie round, so the order
       picks scaffolding; motivation led the first vote 3 : 1.
    2. simple, 2 : 2, the tie round gives misconception 3 : 1.
    3. ranked, metacognitive first for three voters, the fourth abstains.
    4. baseline.
    """
    s, i, o, e = roles = ("scaffolding", "misconception", "motivation", "metacognitive")

    def cast(*choices):
        return dict(zip(roles, choices, strict=True))

    split = cast(s, s, i, i)
    fallback = panel_turn("simple", split, initial=cast(o, o, o, s), tie=split)
    broken = panel_turn("simple", split, tie=cast(i, s, i, i))
    ranking = (e, s, i, o)
    absent = panel_turn("ranked", cast(ranking, ranking, ranking, None))
    source = panel_source(
        panel_episode(fallback, task="t1"),
        panel_episode(broken, task="t2", scores=(0.1, 0.8)),
        panel_episode(absent, task="t1"),
        panel_episode(task="t1", scores=(0.9,)),
    )
    again = [cast(o, o, s, s)]
    return with_retest(source, ("sciq.t1.novice.simple", 1, "vote_initial", again))


@pytest.fixture
def rich_document(rich_source):
    if "document" not in BUILT:
        BUILT["document"] = report_of(rich_source)
    return BUILT["document"]


@pytest.fixture
def rich_page(rich_document):
    if "page" not in BUILT:
        BUILT["page"] = to_html(rich_document)
    return BUILT["page"]
