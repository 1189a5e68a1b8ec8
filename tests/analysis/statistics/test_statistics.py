"""Values by key."""

from tutorsim.analysis.statistics import by_key


def test_keys_and_values_keep_the_order_in_which_they_come():
    found = by_key([("b", 2), ("a", 3), ("b", 1)])
    assert list(found.items()) == [("b", [2, 1]), ("a", [3])]
    assert by_key([]) == {}
