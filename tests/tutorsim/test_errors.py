"""One tree of errors, each with an exit code and three parts."""

import inspect

import pytest

from tutorsim import errors
from tutorsim.errors import CallFailed, TutorsimError

EXIT_CODES = {
    "TutorsimError": 1, "UsageError": 2, "StudyError": 2, "TaskFileError": 2, "CatalogError": 2,
    "BallotFileError": 2, "ClaimsError": 2, "RatingFileError": 2, "FolderError": 2,
    "RecordingRefused": 2, "ReplayError": 3, "MissingCallError": 3, "ChangedCallError": 3,
    "FalseManifest": 4, "RecordingError": 4, "LogError": 4, "BudgetReached": 5, "CallFailed": 1,
    "SandboxError": 6, "SandboxUnavailable": 6, "CheckFailed": 1, "Interrupted": 130,
    "UnusedCallError": 1,
}  # fmt: skip


def test_every_error_has_its_exit_code():
    found = {name: value for name, value in vars(errors).items() if inspect.isclass(value)}
    assert {name: error.exit_code for name, error in found.items()} == EXIT_CODES
    assert all(issubclass(error, TutorsimError) for error in found.values())


def test_the_tree_in_the_module_s_text_is_the_real_one():
    lines = [line for line in errors.__doc__.splitlines() if line.strip().startswith("* ")]
    path: list[str] = []
    for line in lines:
        depth, name = (len(line) - len(line.lstrip())) // 2, line.split()[1]
        path[depth:] = [name]
        error = getattr(errors, name)
        assert error.__mro__[1].__name__ == (path[depth - 1] if depth else "Exception")
        if "exit" in line.split():
            assert error.exit_code == int(line.split()[3])
    assert len(lines) == len(EXIT_CODES)


@pytest.mark.parametrize(
    ("why", "hint", "text"),
    [("", "", "What."), ("Why.", "", "What.\nWhy."), ("Why.", "Do.", "What.\nWhy.\nDo.")],
)
def test_an_error_reads_as_what_why_and_what_to_do(why, hint, text):
    error = TutorsimError("What.", why=why, hint=hint)
    assert str(error) == text
    assert (error.what, error.why, error.hint) == ("What.", why, hint)


def test_a_failed_call_knows_its_key():
    error = CallFailed("529", key="1/propose/motivation/1")
    assert (error.key, str(error)) == ("1/propose/motivation/1", "529")
