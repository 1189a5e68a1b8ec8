"""The whole exception tree.

* TutorsimError                 exit 1
  * UsageError                  exit 2   what was asked for cannot be done as asked
    * StudyError                         a study file or one of its values
    * TaskFileError                      a file of tasks
    * CatalogError                       a role, persona, template or price table
    * BallotFileError                    ballots from elsewhere
    * ClaimsError                        a file of claims, or a citation
    * RatingFileError                    ratings by people, or a rubric for them
    * FolderError                        a folder that cannot be written, or is in use
    * RecordingRefused                   recording was asked for where it must not happen
  * ReplayError                 exit 3   the recording does not hold what the run asks for
    * MissingCallError                   no entry has the key
    * ChangedCallError                   the entry with the key holds another request
  * RecordingError              exit 4   a recording is invalid or unsafe
    * FalseManifest                      its cassettes contradict what its manifest says
  * LogError                    exit 4   a run log is invalid or unsafe
  * BudgetReached               exit 5   the next call could pass the spending cap
  * Interrupted                 exit 130 stopped by Ctrl-C, with everything paid for kept
  * CallFailed                  exit 1   a model call failed for good
  * SandboxError                exit 6   the sandbox itself failed; never scored as the student's
    * SandboxUnavailable                 too few layers on this machine
  * CheckFailed                 exit 1   ran, and the answer is negative
    * UnusedCallError                    the recording holds calls that the run never made

An error has three parts: what (with the offending value), why, and what to do next.
"""

from typing import ClassVar, Literal


class TutorsimError(Exception):
    """Base of every error that tutorsim raises on purpose.

    Args:
        what: What happened, naming the offending value.
        why: The reason, where it is not in `what` already.
        hint: What to do next, as a command where there is one.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint

    def __str__(self) -> str:
        return "\n".join(part for part in (self.what, self.why, self.hint) if part)


class UsageError(TutorsimError):
    """What was asked for cannot be done as asked."""

    exit_code = 2


class StudyError(UsageError):
    """A study file, or one of its values, cannot be used."""


class TaskFileError(UsageError):
    """A file of tasks cannot be read; names file, line and field."""


class CatalogError(UsageError):
    """A role, persona, prompt template or price table cannot be used."""


class BallotFileError(UsageError):
    """Ballots from elsewhere that are no ballots; names file, row and reason."""


class ClaimsError(UsageError):
    """A file of claims, or a citation of a number, cannot be read."""


class RatingFileError(UsageError):
    """Ratings that cannot be joined to a run, or no rubric; names file, row and reason."""


class FolderError(UsageError):
    """A folder cannot be written, is full, or another run is using it."""


class RecordingRefused(UsageError):
    """Recording was asked for where it must not happen by accident."""


class ReplayError(TutorsimError):
    """The recording does not hold what the run asks for."""

    exit_code = 3


class MissingCallError(ReplayError):
    """A call, or a whole cassette, is not in the recording."""


class ChangedCallError(ReplayError):
    """The recording has the call's key with another request."""


class RecordingError(TutorsimError):
    """A recording is invalid, unsafe, or of another version."""

    exit_code = 4


class FalseManifest(RecordingError):
    """What a manifest says is not what its cassettes hold."""


class LogError(TutorsimError):
    """A run log is invalid, unsafe, or of another version."""

    exit_code = 4


class BudgetReached(TutorsimError):
    """The next call could pass the spending cap."""

    exit_code = 5


class Interrupted(TutorsimError):
    """Stopped by Ctrl-C, with everything paid for kept."""

    exit_code = 130


Away = Literal["nobody", "broken", "busy"]
"""Why the same call may be answered later: nothing answers at the endpoint's address; a connection
breaks, or the endpoint has an error of its own; the endpoint says that it has too much to do."""


class CallFailed(TutorsimError):
    """A model call failed after the client's own retries; its episode is marked failed.

    Args:
        what: Kind, status and the endpoint's own words; no request id, host or time.
        why: The reason, where it is not in `what` already.
        hint: What to do next.
        key: The call's key within its episode.
        away: Why the same call may be answered later; `None` where it may not.
    """

    def __init__(
        self, what: str, *, why: str = "", hint: str = "", key: str = "", away: Away | None = None
    ) -> None:
        super().__init__(what, why=why, hint=hint)
        self.key = key
        self.away = away


class SandboxError(TutorsimError):
    """The sandbox itself failed; a student's program is never blamed for it."""

    exit_code = 6


class SandboxUnavailable(SandboxError):
    """This machine offers too few layers to run a student's code."""


class CheckFailed(TutorsimError):
    """A check ran to its end and found a difference."""


class UnusedCallError(CheckFailed):
    """The recording holds calls that the replay never asked for."""
