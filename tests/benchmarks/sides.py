"""Two sides of a ratio, measured in turn."""

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["Measured", "SideBySide"]


class Measured(NamedTuple):
    """Best times of both sides, in seconds."""

    reference: float
    candidate: float


@dataclass
class SideBySide:
    """Measures a candidate beside its reference and notes the ratio with the benchmark."""

    benchmark: Any

    def note(self, *, what, reference, target, ratio, unit):
        """Put one line of the table down."""
        self.benchmark.extra_info.update(
            what=what, reference=reference, target=target, ratio=round(ratio, 3), unit=unit
        )

    def note_time(self, *, what, target):
        """Put the best time of what was measured without a reference down."""
        best = self.benchmark.stats.stats.min
        self.note(what=what, reference="none", target=target, ratio=best, unit="s")

    def time(self, reference, candidate, *, rounds=3, clock=time.perf_counter):
        """Run both in turn, so that what else the machine does meets both; the best of each."""
        best = [float("inf"), float("inf")]

        def timed(side, run):
            started = clock()
            run()
            best[side] = min(best[side], clock() - started)

        for left in reversed(range(rounds)):
            timed(0, reference)
            if left:
                timed(1, candidate)
        self.benchmark.pedantic(timed, args=(1, candidate), rounds=1, iterations=1)
        return Measured(*best)
