"""What every record has in common, and how one is written."""

import json
import re

import orjson
from pydantic import BaseModel, ConfigDict

__all__ = ["SCHEMA_VERSION", "Record", "to_line"]

SCHEMA_VERSION = 1
SMALL = re.compile(r"e-[0-9]")
LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}


class Record(BaseModel):
    """A frozen model; fields that it does not know are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


def to_line(record: BaseModel) -> str:
    """A record as one line of JSON without the line end; the same record gives the same bytes.

    Every field is written as it is held, in the order of the model's fields. Line ends of Unicode
    are escaped as those of ASCII are, so it is one line to every program.
    """
    try:
        text = orjson.dumps(record, default=vars).decode()
    except orjson.JSONEncodeError:  # a number beyond 64 bits
        text = _plainly(record)
    if "0.0000" in text or SMALL.search(text):  # it writes small numbers in other digits
        text = _plainly(record)
    return text if text.isascii() else text.translate(LINE_ENDS)


def _plainly(record: BaseModel) -> str:
    """The record as the standard library spells it."""
    return json.dumps(record.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":"))
