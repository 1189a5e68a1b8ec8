from collections import Counter

from tutorsim.systems.oversight.study import FORMATS, builtin_items, sampled


def test_the_built_in_set_has_eight_dialogues_with_two_replies_each_and_every_class():
    items = builtin_items()
    assert Counter(Counter(item.conversation for item in items).values()) == {2: 8}
    texts = Counter(item.annotation["Providing_Guidance"] for item in items)
    assert set(texts) == {"Yes", "To some extent", "No"}
    assert len({item.annotation["Revealing_of_the_Answer"] for item in items}) == 3


def test_a_draw_does_not_depend_on_the_order_or_on_what_else_there_is():
    items = builtin_items()
    drawn = sampled(items, 3, seed=1)
    assert sampled(drawn, 3, seed=1) == drawn
    assert {i.task_id for i in sampled(items[::-1], 3, seed=1)} == {i.task_id for i in drawn}
    assert sampled(items, None, seed=1) == items
    assert len({sampled(items, 3, seed=s)[0].task_id for s in range(8)}) > 1


def test_items_are_written_as_a_published_file(tmp_path):
    form = FORMATS["mrbench"]
    path = tmp_path / "tasks.json"
    path.write_text(form.write(builtin_items()), encoding="utf-8")
    assert form.read(path) == builtin_items()
