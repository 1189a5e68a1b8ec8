"""What a run's votes and outcomes show. Definitions stand in each module's text.

Vote metrics take any `Source`, also ballots from elsewhere; outcomes need a run's episodes.
They are statements about single logged turns and hold the logged dialogue fixed.
"""

from analysis.metrics.chance import ChanceBaseline, chance_baselines
from analysis.metrics.contrasts import Contrast, contrasts
from analysis.metrics.diagnostics import (
    TURN_DIAGNOSTICS_SCHEMA,
    WINNING_ROLES_SCHEMA,
    Diagnostics,
    diagnostics,
    turn_diagnostics,
    vote_shift,
    winning_roles,
)
from analysis.metrics.noise import (
    BallotAgreement,
    BesideFloor,
    NoiseFloor,
    WinnerStability,
    noise_floor,
)
from analysis.metrics.outcomes import (
    OUTCOMES,
    Gain,
    Outcome,
    Rounds,
    Success,
    SuccessRate,
    episode_counts,
    gains,
    outcome_of,
    paired_outcomes,
    rounds,
    success_rates,
    successes,
)
from analysis.metrics.panel import (
    MARGINS_SCHEMA,
    PIVOTALITY_SCHEMA,
    EffectiveVotes,
    effective_votes,
    margins,
    pivotality,
)
from analysis.metrics.randomisation import (
    LabelPosition,
    SelfSupport,
    label_positions,
    self_support,
)
from analysis.metrics.similarity import SIMILARITY_SCHEMA, role_collapse, similarities
from analysis.metrics.turns import DecidedTurn, decided_turns

__all__ = [
    "MARGINS_SCHEMA",
    "OUTCOMES",
    "PIVOTALITY_SCHEMA",
    "SIMILARITY_SCHEMA",
    "TURN_DIAGNOSTICS_SCHEMA",
    "WINNING_ROLES_SCHEMA",
    "BallotAgreement",
    "BesideFloor",
    "ChanceBaseline",
    "Contrast",
    "DecidedTurn",
    "Diagnostics",
    "EffectiveVotes",
    "Gain",
    "LabelPosition",
    "NoiseFloor",
    "Outcome",
    "Rounds",
    "SelfSupport",
    "Success",
    "SuccessRate",
    "WinnerStability",
    "chance_baselines",
    "contrasts",
    "decided_turns",
    "diagnostics",
    "effective_votes",
    "episode_counts",
    "gains",
    "label_positions",
    "margins",
    "noise_floor",
    "outcome_of",
    "paired_outcomes",
    "pivotality",
    "role_collapse",
    "rounds",
    "self_support",
    "similarities",
    "success_rates",
    "successes",
    "turn_diagnostics",
    "vote_shift",
    "winning_roles",
]
