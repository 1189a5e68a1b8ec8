import pytest

from tutorsim.errors import UsageError
from tutorsim.standin.http_responses_and_faults import FAULT_KINDS, Fault, Faults, parse_fault


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ("429", Fault("429")),
        ("429:0.1", Fault("429", share=0.1)),
        ("429:0.1:2.5", Fault("429", share=0.1, seconds=2.5)),
        ("drop:20", Fault("drop", share=1.0, every=20)),
        ("drop:2:86400", Fault("drop", share=1.0, every=2, seconds=86400)),
        ("500:0", Fault("500", share=0.0)),
        ("529", Fault("529", share=0.05, every=None, seconds=1.0, persist=False)),
        ("500:1", Fault("500", share=1.0)),
        ("slow:1:0.2:persist", Fault("slow", share=1.0, seconds=0.2, persist=True)),
        ("cut:persist", Fault("cut", persist=True)),
    ],
)
def test_a_fault_is_read_from_its_text(spec, fault):
    assert parse_fault(spec) == fault


@pytest.mark.parametrize(
    "spec",
    ["", "oops", "500:", "500:x", "500:-1", "500:1.5", "500:1:2:3", "500:nan", "429:1:86401"],
)
def test_what_is_no_fault_is_refused_with_the_kinds(spec):
    with pytest.raises(UsageError) as caught:
        parse_fault(spec)
    assert repr(spec) in caught.value.what
    assert "for example 429:0.1:2 or drop:20." in caught.value.why
    assert parse_fault("429:0.1:2") != parse_fault("drop:20")
    assert all(kind in caught.value.hint for kind in FAULT_KINDS)


def test_a_share_strikes_about_so_many_requests():
    faults = Faults([Fault("500", share=0.1)], seed=0)
    struck = sum(faults.meets(f"request {i}", 0) is not None for i in range(2000))
    assert 150 < struck < 250


def test_the_same_requests_are_struck_in_any_order():
    names = [f"request {i}" for i in range(200)]
    fault = Fault("429", share=0.2)
    forward, backward = Faults([fault], seed=4), Faults([fault], seed=4)
    struck = {name for name in names if forward.meets(name, 0)}
    assert struck == {name for name in reversed(names) if backward.meets(name, 0)}
    assert struck != {name for name in names if Faults([fault], seed=5).meets(name, 0)}


def test_every_so_many_requests_counts_new_ones_only():
    faults = Faults([Fault("drop", share=1.0, every=3)], seed=0)
    arrivals = [("a", 0), ("b", 0), ("b", 1), ("c", 0), ("c", 1), ("d", 0), ("e", 0), ("f", 0)]
    struck = [name for name, before in arrivals if faults.meets(name, before)]
    assert struck == ["c", "f"]


@pytest.mark.parametrize("kind", FAULT_KINDS)
@pytest.mark.parametrize("persist", [True, False])
def test_sending_again_helps_unless_the_fault_lasts_or_is_a_reply(kind, persist):
    faults = Faults([Fault(kind, share=1.0, persist=persist)], seed=0)
    assert faults.meets("request", 0) is not None
    lasts = persist or kind in ("refusal", "empty", "truncated")
    assert (faults.meets("request", 1) is not None) == lasts


def test_the_first_fault_that_applies_is_met():
    faults = Faults([Fault("429", share=0.0), Fault("529", share=1.0), Fault("500")], seed=0)
    assert faults.meets("request", 0).kind == "529"
