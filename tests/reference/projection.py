"""Plain oracle of the projection of many panels at once: one profile, ballot by ballot."""

from tests.reference.plain_rules import ranking_of, winners
from tests.reference.turns import under
from tutorsim.analysis.counting.ballot_format_conversion import counted_form, projected_masses
from tutorsim.analysis.counting.names_and_parameters_of_rules import ballot_format

__all__ = ["projected_ballots", "projected_winners"]


def projected_ballots(profile, target, *, budget):
    """Every ballot cast in the target's format; abstentions stay out."""
    plain, form = under(profile, ballot_format(target)), counted_form(target)
    return [projected_masses(ballot, plain.protocol, form, budget) for ballot in plain.cast]


def projected_winners(profile, target, *, budget):
    """The tied winners: the order that a ballot shows stands for a ranking, and the rules that read
    rankings count a level as the average over its orders."""
    names = [str(c) for c in range(profile.size)]
    masses = projected_ballots(profile, target, budget=budget)
    ballots = [dict(zip(names, ballot, strict=True)) for ballot in masses]
    cast = under(profile, ballot_format(target)).cast
    rankings = [ranking_of(dict(zip(names, ballot, strict=True))) for ballot in cast]
    found = winners(target, ballots=ballots, rankings=rankings, candidates=names)
    return tuple(int(c) for c in found)
