"""Answers about profiles by search alone, each question once."""

from tutorsim.analysis.identify.possible_winners import WORK_LIMIT, PanelSearch, query_of

__all__ = ["Identifier"]


class Identifier:
    """Remembers the answers.

    Args:
        budget: Points of a cumulative ballot.
        limit: Units of work for the possible winners of one profile under one target.
    """

    def __init__(self, *, budget, limit=WORK_LIMIT):
        self.budget = budget
        self.limit = limit
        self._searches = {}
        self._possible = {}

    def possible(self, profile, target, *, exempt, reading):
        """Possible winners with at most `exempt` exempt voters."""
        query = query_of(profile, target, self.budget)
        key = (query, exempt, reading)
        if key not in self._possible:
            found = self._search(query).possible(exempt=exempt, reading=reading)
            self._possible[key] = found
        return self._possible[key]

    def contested(self, profile, target, *, winner, exempt, reading):
        """Whether anything but `winner` is possible; `None` if that is not settled."""
        search = self._search(query_of(profile, target, self.budget))
        return search.contested(winner=winner, exempt=exempt, reading=reading)

    def _search(self, query):
        if query not in self._searches:
            self._searches[query] = PanelSearch(query, limit=self.limit)
        return self._searches[query]
