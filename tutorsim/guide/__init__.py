"""The guide: one Markdown page a topic, in this folder."""

from importlib import resources
from typing import Final

from tutorsim.errors import UsageError

__all__ = ["TOPICS", "page"]

TOPICS: Final = {
    "recording": "Record a study: its file, costs, interruptions, keys.",
    "replay": "Replay and verify, in CI and in tests; environment variables.",
    "claims": "Cite a number of a report, and compute every one again.",
    "recounts": "What other rules would have chosen, and what that assumes.",
    "statistics": "What intervals and tests hold, and how many tasks show what.",
    "futures": "Branch, retest and format invariance: three experiments on a recording.",
    "panels": "Compare panels of other sizes and roles, and placebos.",
    "rating": "People as judges: rating sheets, agreement, the model judge beside people.",
    "ballots": "Ballots from elsewhere.",
    "debate": "Debates that end by a vote or a consensus, and every protocol on one discussion.",
    "council": "Councils of models: who ranked whom, and what another rule would have chosen.",
    "oversight": "Labels for tutors' replies, and an audit of any recording.",
    "group": "Lessons in which agents decide when to speak, and a person can take part.",
    "panel": "Record and test a panel of your own, which is no study of ours.",
    "python": "The same questions in Python.",
    "extending": "Add a system, a voting rule, a task format.",
    "sandbox": "How students' programs are judged.",
    "speed": "How fast it is, and how to measure it again.",
}
"""Topic → what its page is about, in the order to read them."""


def page(topic: str) -> str:
    """The text of a page, in Markdown.

    Raises:
        UsageError: If there is no such topic.
    """
    if topic not in TOPICS:
        raise UsageError(
            f"The guide has no page {topic!r}.",
            why=f"Its pages are {', '.join(TOPICS)}.",
            hint="`tutorsim guide` says what each is about.",
        )
    return (resources.files(__name__) / f"{topic}.md").read_text(encoding="utf-8")
