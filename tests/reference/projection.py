"""Plain oracle of the projection of many panels at once: one profile, ballot by ballot."""

from tests.reference.turns import under
from tutorsim.analysis.ballots.vote_arrays import levels_of
from tutorsim.analysis.counting.ballot_format_conversion import (
    Projected,
    counted_form,
    projected_masses,
)
from tutorsim.analysis.counting.rule_definitions import ballot_format

__all__ = ["project"]


def project(profile, target, *, budget):
    """Project every ballot cast; abstentions stay out."""
    plain, form = under(profile, ballot_format(target)), counted_form(target)
    masses = tuple(projected_masses(b, plain.protocol, form, budget) for b in plain.cast)
    orders = (levels_of(b) for b in plain.cast)
    rankings = (tuple(tuple(str(c) for c in level) for level in order) for order in orders)
    return Projected(masses, tuple(rankings))
