"""What every record has in common, and how one is written.

A record is declared, read and written as one line:

    class Remark(Record):
        text: str
        turn: int = 1

    remark = Remark.model_validate_json('{"text": "yes", "later": 0}')
    to_line(remark)  # '{"text":"yes","turn":1}'
"""

import gc
import json
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

import orjson
from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer
from pydantic.dataclasses import dataclass

SCHEMA_VERSION = 1
SMALL = re.compile(r"e-[0-9]")
LINE_ENDS = {end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}


class Record(BaseModel):
    """A frozen model; fields that it does not know are ignored."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="ignore", allow_inf_nan=False)


T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def part_of_record(declared: type[T]) -> type[T]:
    """Declare what a log has very many of: as frozen as a `Record`, in a tenth of its memory.

    `dataclasses.replace` gives a copy with other values.
    """
    config = ConfigDict(defer_build=True, extra="ignore")
    made: Any = dataclass(declared, frozen=True, slots=True, kw_only=True, config=config)
    return cast(type[T], made)


class LastingRecord(Record):
    """A record whose later fields are written only where they say something.

    So a field with a default, added to a later version, changes no byte of what an earlier one
    wrote and no digest over it.
    """

    first_form: ClassVar[frozenset[str]]
    """Fields that are always written: those of the first version of the format."""

    @model_serializer(mode="wrap")
    def _without_later_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _left_in(self, write(self), self.first_form)


class GrownRecord(Record):
    """A log line, never part of one, that has `later` fields only where they are not `None`.

    So a log without them has the bytes that it had before there were any.
    """

    later: ClassVar[frozenset[str]]
    """Fields that came after the first version of the format."""

    def said(self) -> dict[str, Any]:
        """The fields that a line has, as they are held."""
        return self._without_unsaid(vars(self))

    @model_serializer(mode="wrap")
    def _as_said(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return self._without_unsaid(write(self))

    def _without_unsaid(self, values: dict[str, Any]) -> dict[str, Any]:
        return {name: v for name, v in values.items() if name not in self.later or v is not None}


def lasting(model: BaseModel, first: Collection[str]) -> dict[str, Any]:
    """A model's values as JSON has them, without later fields that hold their default.

    `first` are the fields of the first version of the format, which are always in.
    """
    return _left_in(model, model.model_dump(mode="json"), first)


def _left_in(model: BaseModel, values: dict[str, Any], first: Collection[str]) -> dict[str, Any]:
    fields = type(model).model_fields
    return {
        name: value
        for name, value in values.items()
        if name in first
        or getattr(model, name) != fields[name].get_default(call_default_factory=True)
    }


def to_line(record: object) -> str:
    """A record as one line of JSON without the line end; the same record gives the same bytes.

    Every field is written as it is held, in the order of the model's fields. Line ends of Unicode
    are escaped as those of ASCII are, so it is one line to every program.
    """
    fields = record.said() if isinstance(record, GrownRecord) else record
    try:
        text = orjson.dumps(fields, default=vars).decode()
    except orjson.JSONEncodeError:  # a number beyond 64 bits
        text = _plainly(record)
    if "0.0000" in text or SMALL.search(text):  # it writes small numbers in other digits
        text = _plainly(record)
    if not text.isascii():
        for end, escaped in LINE_ENDS.items():
            text = text.replace(end, escaped)
    return text


def _plainly(record: object) -> str:
    """The record as the standard library spells it."""
    assert isinstance(record, BaseModel)
    return json.dumps(record.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":"))


@contextmanager
def uncollected() -> Iterator[None]:
    """Leave garbage in cycles to the end of what is done: making or reading records.

    They are many objects and hardly any cycle, and looking for one again and again takes from a
    tenth to a third of the time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
