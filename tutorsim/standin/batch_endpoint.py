"""The Message Batches endpoint: batches are taken in, asked after, cancelled, and read.

A batch has ended as soon as it is there, unless the fault `pending` gives it time. Batches live
as long as the server; after a restart they are gone, as those of a real account are in the end.
"""

import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import orjson

from tutorsim.model.batch import call_digest
from tutorsim.standin.responses_and_faults import Faults, Problem, Response, error_value

BATCHES_PATH: Final = "/v1/messages/batches"
LARGEST_BATCH: Final = 256_000_000
"""Bytes of a body, the API's own limit."""
_MOST_ENTRIES: Final = 100_000
_CUSTOM_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_WITH_DIGEST: Final = re.compile(r"([0-9a-f]{32})-")
_KINDS: Final = ("succeeded", "errored", "canceled", "expired")
_LIFE: Final = timedelta(hours=24)

Ask = Callable[[object, str], dict[str, Any]]


def entry_error(status: int, message: str) -> dict[str, Any]:
    """The result of an entry that was not answered."""
    return {"type": "errored", "error": {"type": "error", "error": error_value(status, message)}}


def _occurrence(custom_id: str) -> str:
    """The digest of the call's name: what the id begins with, or the digest of the whole id."""
    found = _WITH_DIGEST.match(custom_id)
    return found[1] if found else call_digest(custom_id)


@dataclass
class _Batch:
    id: str
    entries: dict[str, object]
    """`custom_id` → parameters of the message."""
    created: datetime
    ends_at: float
    """On the server's own clock."""
    cancelled: datetime | None = None
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    """`custom_id` → result; empty until the batch has ended."""


class Batches:
    """All batches of a server.

    Args:
        ask: Answers one entry, from its parameters and its occurrence.
        faults: Which batches take time.
        clock: Seconds that pass.
    """

    def __init__(
        self, ask: Ask, faults: Faults, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._faults = faults
        self._clock = clock
        self._batches: dict[str, _Batch] = {}

    @staticmethod
    def name(method: str, target: str, content: bytes) -> str:
        """What names a request: the same for each time that it is sent."""
        return f"{method} {target} {hashlib.sha256(content).hexdigest()}"

    def answer(self, method: str, target: str, host: str | None, content: bytes) -> Response:
        """Answer a request below `BATCHES_PATH`.

        Args:
            method: The HTTP method.
            target: Path and query as sent.
            host: What the client calls the server.
            content: The body.

        Raises:
            Problem: If it is refused.
        """
        parts = urlsplit(target)
        match method, *parts.path.removeprefix(BATCHES_PATH).strip("/").split("/"):
            case "POST", "":
                return _value(self._shown(self._created(content), host))
            case "GET", "":
                return _value(self._listed(parts.query, host))
            case "GET", batch_id:
                return _value(self._shown(self._found(batch_id), host))
            case "GET", batch_id, "results":
                return self._read(self._found(batch_id))
            case "POST", batch_id, "cancel":
                return _value(self._shown(self._cancelled(batch_id), host))
        raise Problem(404, f"There is nothing for {method[:20]} at {target[:200]}.")

    def _created(self, content: bytes) -> _Batch:
        entries = _checked_entries(content)
        named = orjson.dumps([len(self._batches), *map(_occurrence, entries)])
        batch_id = f"msgbatch_{hashlib.sha256(named).hexdigest()[:24]}"
        fault = self._faults.meets(batch_id, 0)
        ends_at = self._clock() + (fault.seconds if fault else 0.0)
        batch = _Batch(batch_id, entries, datetime.now(UTC), ends_at)
        self._batches[batch_id] = batch
        return batch

    def _found(self, batch_id: str) -> _Batch:
        batch = self._batches.get(batch_id)
        if batch is None:
            raise Problem(404, f"There is no batch {batch_id[:100]}.")
        if not batch.results and self._clock() >= batch.ends_at:
            batch.results = {
                custom_id: self._ask(params, _occurrence(custom_id))
                for custom_id, params in batch.entries.items()
            }
        return batch

    def _cancelled(self, batch_id: str) -> _Batch:
        """End a batch now: of one under way, the first half has been answered."""
        batch = self._found(batch_id)
        if not batch.results:
            batch.cancelled = datetime.now(UTC)
            half = len(batch.entries) // 2
            for place, (custom_id, params) in enumerate(batch.entries.items()):
                reached = place < half
                batch.results[custom_id] = (
                    self._ask(params, _occurrence(custom_id)) if reached else {"type": "canceled"}
                )
        return batch

    def _listed(self, query: str, host: str | None) -> dict[str, Any]:
        """A page of batches, the newest first."""
        fields = {name: values[-1] for name, values in parse_qs(query).items()}
        limit = fields.get("limit", "20")
        if not limit.isdecimal() or not 1 <= int(limit) <= 1000:
            raise Problem(400, "limit: a whole number from 1 to 1000 is required.")
        ids = [*reversed(self._batches)]
        after = fields.get("after_id")
        if after is not None and after not in self._batches:
            raise Problem(400, f"after_id: there is no batch {after[:100]}.")
        start = ids.index(after) + 1 if after is not None else 0
        page = ids[start : start + int(limit)]
        return {
            "data": [self._shown(self._found(batch_id), host) for batch_id in page],
            "has_more": start + len(page) < len(ids),
            "first_id": page[0] if page else None,
            "last_id": page[-1] if page else None,
        }

    def _shown(self, batch: _Batch, host: str | None) -> dict[str, Any]:
        ended = bool(batch.results)
        base = f"http://{host}" if host else ""
        counted = Counter(result["type"] for result in batch.results.values())
        counts = {kind: counted[kind] for kind in _KINDS}
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": {"processing": 0 if ended else len(batch.entries), **counts},
            "created_at": _moment(batch.created),
            "expires_at": _moment(batch.created + _LIFE),
            "ended_at": _moment(batch.created) if ended else None,
            "cancel_initiated_at": _moment(batch.cancelled),
            "archived_at": None,
            "results_url": f"{base}{BATCHES_PATH}/{batch.id}/results" if ended else None,
        }

    def _read(self, batch: _Batch) -> Response:
        if not batch.results:
            raise Problem(404, f"The batch {batch.id} has not ended yet.")
        lines = b"".join(orjson.dumps(line) + b"\n" for line in _lines(batch))
        return Response(200, lines, "", content_type="application/x-jsonl")


def _lines(batch: _Batch) -> Iterator[dict[str, Any]]:
    """Results in another order than the entries, as the API may give them."""
    for custom_id in reversed(batch.results):
        yield {"custom_id": custom_id, "result": batch.results[custom_id]}


def _value(value: object) -> Response:
    return Response(200, orjson.dumps(value), "")


def _moment(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _checked_entries(content: bytes) -> dict[str, object]:
    try:
        requests = orjson.loads(content)["requests"]
        entries = {str(one["custom_id"]): one["params"] for one in requests}
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise Problem(400, "requests: entries with custom_id and params are required.") from error
    if not 1 <= len(requests) <= _MOST_ENTRIES:
        raise Problem(400, f"requests: from 1 to {_MOST_ENTRIES} entries are required.")
    if len(entries) < len(requests):
        raise Problem(400, "requests: every custom_id may come once only.")
    for custom_id in entries:
        if not _CUSTOM_ID.fullmatch(custom_id):
            raise Problem(400, f"custom_id: {custom_id[:100]!r} is not [a-zA-Z0-9_-]{{1,64}}.")
    return entries
