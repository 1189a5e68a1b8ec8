import pytest

from tutorsim.analysis.pages.words import shown


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("windows\r\nline", "windows\nline"),
        ("overwritten\rline", r"overwritten\x0dline"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("nul\x00", r"nul\x00"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("half \ud83d", r"half \ud83d"),
        ("👩‍🔬 stays whole", "👩‍🔬 stays whole"),
        ("مرحبا, שלום", "مرحبا, שלום"),
    ],
)
def test_what_nobody_can_see_is_made_visible_and_the_rest_stays(written, seen):
    assert shown(written) == seen
    shown(written).encode()
