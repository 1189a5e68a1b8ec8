"""Names of calls in a batch: short, and enough to know them by."""

import re

from tutorsim.model.batch import CustomId, call_digest, new_mark

LONG = "humaneval." + "x" * 200 + ".help_avoidant.cumulative.r02/12/tie_critique/motivation/2"


def test_an_id_fits_whatever_the_call_and_reads_back():
    for call in ("a", LONG, "\ud800"):
        found = CustomId.of(call, '{"model":"m"}', new_mark())
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", str(found))
        assert CustomId.parse(str(found)) == found
        assert found.call == call_digest(call)


def test_call_request_and_submission_each_change_it():
    ids = {
        str(CustomId.of("a", "r", "0" * 14)),
        str(CustomId.of("b", "r", "0" * 14)),
        str(CustomId.of("a", "s", "0" * 14)),
        str(CustomId.of("a", "r", new_mark())),
        str(CustomId.of("a", "r", new_mark())),
    }
    assert len(ids) == 5


def test_another_name_is_not_taken_for_one():
    for text in ("", "my-request-1", "a" * 64, "-" * 64):
        assert CustomId.parse(text) is None
