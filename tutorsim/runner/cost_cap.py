"""What a recording has cost, and the cap that it must not pass."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tutorsim.cost_plan import PriceTable
from tutorsim.errors import BudgetReached, UsageError
from tutorsim.model import Call, Reply

__all__ = ["Budget"]


@dataclass
class Budget:
    """Counts tokens and cost of the calls of a recording, and reserves before each new one.

    A reservation is the most that a call can cost: one token for each byte of its text and the
    whole of its `max_tokens`. The cap can therefore not be passed, and the last part of it stays
    unspent.
    """

    prices: PriceTable
    max_usd: float | None = None
    """Cap over everything in the recording, calls of earlier sessions among them; `None`: none."""
    calls: int = 0
    """Replies counted."""
    reused: int = 0
    """Replies taken over from the recording that a branch continues; they cost nothing."""
    input_tokens: int = 0
    output_tokens: int = 0
    spent: float = 0.0
    """US dollars, models without a price left out."""
    unpriced: set[str] = field(default_factory=set)
    """Models that were called and have no price."""
    _committed: float = 0.0
    """Paid in this and in earlier sessions; kept up only where there is a cap."""
    _reserved: float = 0.0

    def check_models(self, models: Iterable[str]) -> None:
        """Refuse a cap that could not be kept.

        Args:
            models: Every model that the study asks.

        Raises:
            UsageError: If there is a cap and a model of the study has no price.
        """
        unknown = sorted(name for name in set(models) if self.prices.price(name) is None)
        if self.max_usd is not None and unknown:
            raise UsageError(
                f"--max-usd cannot be kept: the price of {unknown[0]!r} is unknown.",
                why=f"The price table of {self.prices.as_of} does not have it.",
                hint="Give a table that has it with `--prices FILE`.",
            )

    def reserve(self, call: Call) -> float:
        """Set aside what a call can cost at most.

        Returns:
            The reservation in US dollars, to be given back to `settle` or `release`.

        Raises:
            BudgetReached: If the call could pass the cap.
        """
        if self.max_usd is None:
            return 0.0
        request = call.request
        tokens = len((request.system + request.user).encode()) + 64
        most = self.prices.cost(request.model, tokens, request.max_tokens) or 0.0
        if self._committed + self._reserved + most > self.max_usd:
            raise BudgetReached(
                f"The next call could pass the cap of {self.max_usd:.2f} US dollars.",
                why=f"{self._committed:.4f} are spent, {self._reserved:.4f} are set aside for "
                f"calls under way, and the next one takes at most {most:.4f}.",
                hint="Everything paid for is kept. Give the same command with a higher --max-usd.",
            )
        self._reserved += most
        return most

    def release(self, reservation: float) -> None:
        """Give a reservation back."""
        self._reserved -= reservation

    def count_earlier(self, model: str, reply: Reply) -> None:
        """Count a reply of an earlier session towards the cap."""
        self._committed += self._cost(model, reply) or 0.0

    def count(self, model: str, reply: Reply, *, new: bool) -> None:
        """Count a reply of the recording.

        Args:
            model: The model that was asked for.
            reply: What came back.
            new: Paid for in this session.
        """
        self.calls += 1
        self.input_tokens += reply.input_tokens
        self.output_tokens += reply.output_tokens
        cost = self._cost(model, reply)
        if cost is None:
            self.unpriced.add(model)
            return
        self.spent += cost
        if new:
            self._committed += cost

    def _cost(self, model: str, reply: Reply) -> float | None:
        return self.prices.cost(model, reply.input_tokens, reply.output_tokens)
