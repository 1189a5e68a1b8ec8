from tutorsim.systems.panel.scripted_prompt_reading import Asked

KINDS = {
    "student": "student",
    "judge": "judge",
    "propose": "propose",
    "critique": "review",
    "tie_critique": "review",
    "revise": "revise",
    "vote_initial": "vote",
    "vote_final": "vote",
    "tie_vote": "vote",
}


def asked(call):
    return Asked(call.request.system, call.request.user)


def test_every_prompt_of_the_package_is_read_as_what_it_is(played):
    read = {(call.key.stage, asked(call).kind) for _, call, _ in played.calls}
    assert read == set(KINDS.items())


def test_the_ballot_format_is_read_from_the_prompt(played):
    votes = [(spec, call) for spec, call, _ in played.calls if "vote" in call.key.stage]
    assert {(spec.condition, asked(call).form) for spec, call in votes} == {
        (name, name) for name in ("simple", "ranked", "cumulative", "approval")
    }


def test_the_task_is_known_in_every_prompt(played):
    for spec, call, _ in played.calls:
        about = asked(call).known
        assert not about.invented
        text = spec.task.prompt if about.program else spec.task.question
        assert about.question == text.rstrip()


def test_drafts_are_read_with_their_labels_and_nothing_else(played):
    for _, call, _ in played.calls:
        if call.key.stage in ("vote_initial", "vote_final", "critique"):
            assert list(asked(call).drafts) == list("ABCD")
        if call.key.stage == "revise":
            own = asked(call).own_draft
            assert own
            assert len(asked(call).drafts) == 3
            assert own not in asked(call).drafts.values()


def test_what_the_student_said_and_was_told_is_read_from_the_prompt(played):
    for record in played.records[:60]:
        texts = [attempt.text for attempt in record.attempts]
        for turn, call in (
            (call.key.turn, call)
            for spec, call, _ in played.calls
            if spec.episode_id == record.episode_id and call.key.stage == "student"
        ):
            spoken = asked(call).spoken
            assert list(spoken.attempts) == texts[:turn]
            assert spoken.delivered == (record.turns[turn - 1].delivered if turn else None)


def test_the_judge_reads_the_whole_answer_and_nothing_more(played):
    texts = {attempt.text for record in played.records for attempt in record.attempts}
    graded = {asked(call).graded for _, call, _ in played.calls if call.key.stage == "judge"}
    assert graded == texts


def test_second_askings_are_noticed(played):
    for _, call, _ in played.calls:
        assert asked(call).again == (call.key.attempt == 2)


def test_the_budget_is_read_from_the_prompt(ask):
    form = "Distribute exactly 40 points over the 3 replies"
    assert (ask("", form).form, ask("", form).budget) == ("cumulative", 40)


def test_traits_may_be_whole_numbers(ask):
    system = (
        "traits: prior knowledge 0, confidence 1, persistence 0.5, "
        "frustration sensitivity 0.25, help seeking 1.0."
    )
    assert ask(system, "").traits == (0.0, 1.0, 0.5, 0.25, 1.0)
    assert ask("a student", "").traits is None
