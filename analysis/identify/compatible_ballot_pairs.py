"""Whether two ballots agree: one ballot as a member of what another one leaves possible.

What a voter may have cast, given its ballot, is stated in `analysis.identify.consistent_ballots`;
here a given ballot is looked for among these.
"""

from collections.abc import Sequence
from functools import lru_cache

from tutorsim.analysis.ballots.turn_profiles import Masses
from tutorsim.analysis.identify.consistent_ballots import Domain, domain_of
from tutorsim.vocabularies import Protocol

__all__ = ["may_have_cast", "share_a_ranking"]


@lru_cache(maxsize=1 << 16)
def may_have_cast(ballot: Masses, protocol: Protocol, other: Masses, form: Protocol) -> bool:
    """Whether a sincere voter that cast `ballot` may have cast `other` in another format.

    Args:
        ballot: Masses by candidate.
        protocol: Its format.
        other: Masses by candidate.
        form: The format of `other`; where it is the ballot's own, only the same ballot will do.
    """
    return _holds(domain_of(ballot, protocol=protocol, target=form), other, form)


def share_a_ranking(one: Masses, other: Masses) -> bool:
    """Whether some ranking agrees with both ballots, whatever their formats.

    It is built from the top: the next place goes to somebody above whom neither ballot puts
    anyone that is left. Where there is nobody, the ballots contradict each other.
    """
    left = set(range(len(one)))
    while left:
        most, most_other = max(one[c] for c in left), max(other[c] for c in left)
        free = {c for c in left if one[c] == most and other[c] == most_other}
        if not free:
            return False
        left -= free
    return True


def _holds(domain: Domain, ballot: Masses, form: Protocol) -> bool:
    if domain.kind == "exact":
        return ballot == domain.data
    levels = domain.levels
    if form == "simple":
        return any(ballot[c] for c in levels[0])
    if form == "approval":
        cut = domain.kind == "order" and _cut(ballot, levels)
        return any(ballot) and _never_rises(ballot, levels) and not cut
    return _never_rises(ballot, levels)


def _never_rises(ballot: Masses, levels: Sequence[Sequence[int]]) -> bool:
    """Nobody has more than anybody in a better level."""
    least = [min(ballot[c] for c in level) for level in levels]
    most = [max(ballot[c] for c in level) for level in levels]
    return all(above >= below for above, below in zip(least, most[1:], strict=False))


def _cut(ballot: Masses, levels: Sequence[Sequence[int]]) -> bool:
    """Candidates of one level are told apart."""
    return any(len({ballot[c] for c in level}) > 1 for level in levels)
