from tutorsim.records.oversight import Labels, gold_labels


def gold(mistake="Yes", guidance="Yes", revealing="No", **maps):
    annotation = {
        "Mistake_Identification": mistake,
        "Providing_Guidance": guidance,
        "Revealing_of_the_Answer": revealing,
    }
    maps = {"mistake_map": "lenient", "guidance_map": "plain", **maps}
    return gold_labels(annotation, **maps)


def test_to_some_extent_is_a_seen_mistake_under_the_lenient_map_only():
    assert gold("To some extent").mistake == 1
    assert gold("To some extent", mistake_map="strict").mistake == 0
    assert gold("No").mistake == 0


def test_guidance_has_three_degrees():
    assert [gold(guidance=g).guidance for g in ("No", "To some extent", "Yes")] == [0, 1, 2]


def test_any_revealed_answer_leaves_no_guidance_under_that_map():
    for text in ("Yes (and the answer is correct)", "Yes (but the answer is incorrect)"):
        assert gold(revealing=text).guidance == 2
        assert gold(revealing=text, guidance_map="revealed_is_zero") == Labels(
            mistake=1, guidance=0
        )
    assert gold(guidance_map="revealed_is_zero").guidance == 2
