"""Group lessons and duels: who spoke and why, what else a rule would have done, how it went."""

from tutorsim.analysis.systems.group.group_view import VIEW

__all__ = ["VIEW"]
