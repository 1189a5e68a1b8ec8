"""What answered a recording, as its own replies tell."""

import importlib.metadata
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from tutorsim.records import Provenance
from tutorsim.replay.cassette_file import Cassette
from tutorsim.replay.recorded_call import STANDIN_HEADER
from tutorsim.vocabularies import ProvenanceKind

__all__ = ["Witness", "package_versions", "relay_name", "today"]

PACKAGES: Final = ("anthropic", "httpx2", "tutorsim", "vcrpy")
API_NAME: Final = "Anthropic API"
STANDIN_NAME: Final = "tutorsim stand-in"
UNNAMED: Final = "unnamed"
MIXED: Final = "mixed: "


@dataclass
class Witness:
    """Gathers what answered cassettes."""

    kinds: set[ProvenanceKind] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    """Those that replies name; added by whoever reads the replies."""
    standins: set[str] = field(default_factory=set)
    days: set[str] = field(default_factory=set)
    """First and last days of the recording that cassettes name."""
    relays: set[str] = field(default_factory=set)
    """Names of a user's own server that cassettes have."""
    silent: bool = False
    """Whether a cassette says nothing of days and names, being from before they did."""

    def note(self, cassette: Cassette) -> None:
        """Take in one cassette; an empty one says nothing."""
        if not cassette.interactions:
            return
        self.kinds.add(cassette.kind)
        named = {one.response_headers.get(STANDIN_HEADER) for one in cassette.interactions.values()}
        self.standins |= {name for name in named if name is not None}
        if cassette.recorded is None:
            self.silent = True
        else:
            self.days |= {cassette.recorded.first, cassette.recorded.last}
            self.relays |= {cassette.recorded.relay or ""} - {""}

    def join(self, other: "Witness") -> None:
        """Take in what another one gathered."""
        self.kinds |= other.kinds
        self.models |= other.models
        self.standins |= other.standins
        self.days |= other.days
        self.relays |= other.relays
        self.silent |= other.silent

    def provenance(
        self,
        *,
        relay_name: str | None = None,
        recorded_from: str | None = None,
        recorded_to: str | None = None,
    ) -> Provenance:
        """Say what answered. A mixture counts as a relay and says what was mixed.

        What the cassettes say goes before what is given.

        Args:
            relay_name: What the user calls the server that answered.
            recorded_from: First day of recording, ISO date in UTC.
            recorded_to: Last day.
        """
        if self._speak and relay_name not in self.relays:
            relay_name = min(self.relays, default=None)
        kind, name = self._named(relay_name)
        if self._speak:
            recorded_from, recorded_to = min(self.days), max(self.days)
        return Provenance(
            kind=kind,
            name=name,
            models=tuple(sorted(self.models)),
            recorded_from=recorded_from,
            recorded_to=recorded_to,
        )

    @property
    def _speak(self) -> bool:
        """Whether the cassettes say days and names."""
        return bool(self.days) and not self.silent

    def unvouched(self, stated: Provenance) -> tuple[str, ...]:
        """What a provenance says and no cassette does."""
        parts = {
            "the days of recording": not self._speak,
            "the relay's name": stated.kind == "relay" and not self._speak,
            "its limits": bool(stated.limits),
        }
        return tuple(part for part, is_open in parts.items() if is_open)

    def _named(self, relay_name: str | None) -> tuple[ProvenanceKind, str]:
        if self.kinds == {"stand-in"}:
            return "stand-in", f"{STANDIN_NAME} {', '.join(sorted(self.standins))}"
        if self.kinds == {"api"}:
            return "api", API_NAME
        name = relay_name or UNNAMED
        return "relay", name if self.kinds <= {"relay"} else f"{name} ({_mixture(self.kinds)})"


def relay_name(earlier: Provenance | None) -> str | None:
    """What an earlier provenance calls the user's server, without what was mixed into it.

    `None` where there is none, it was not named, or something else answered.
    """
    if earlier is None or earlier.kind != "relay":
        return None
    name = earlier.name.partition(f" ({MIXED}")[0]
    return None if name == UNNAMED else name


def _mixture(kinds: set[ProvenanceKind]) -> str:
    return f"{MIXED}{', '.join(sorted(kinds))}"


def package_versions() -> dict[str, str]:
    """The versions that shape a recording: of Python, the client, the format and tutorsim."""
    found = {name: importlib.metadata.version(name) for name in PACKAGES}
    return dict(sorted({**found, "python": platform.python_version()}.items()))


def today() -> str:
    """The day in UTC, as an ISO date."""
    return datetime.now(UTC).date().isoformat()
