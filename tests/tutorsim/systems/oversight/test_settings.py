import pytest

from tutorsim.systems.oversight.settings import CONDITIONS, SCRIPTS, Act, Script


def test_every_condition_has_a_script():
    assert set(SCRIPTS) == set(CONDITIONS)


def test_the_whole_debate_has_its_five_acts_between_briefing_and_judgment():
    assert SCRIPTS["hpo"].acts == (
        Act.BRIEFING,
        Act.OPENING,
        Act.CROSS,
        Act.REBUTTAL,
        Act.PRESS,
        Act.CLOSING,
        Act.JUDGMENT,
    )


@pytest.mark.parametrize(
    "acts",
    [
        (),
        (Act.JUDGMENT,),
        (Act.OPENING,),
        (Act.OPENING, Act.PRESS, Act.CLOSING, Act.JUDGMENT),
        (Act.OPENING, Act.REBUTTAL, Act.PRESS, Act.CLOSING, Act.JUDGMENT),
        (Act.OPENING, Act.CROSS, Act.CLOSING, Act.JUDGMENT),
        (Act.BRIEFING, Act.JUDGMENT),
        (Act.ALONE, Act.JUDGMENT),
        (Act.BRIEFING, Act.ASSESSMENT, Act.JUDGMENT),
        (Act.JUDGMENT, Act.OPENING),
    ],
)
def test_an_illegal_order_cannot_be_built(acts):
    with pytest.raises(ValueError, match=r"begins|ends|follow|needs"):
        Script(acts)
