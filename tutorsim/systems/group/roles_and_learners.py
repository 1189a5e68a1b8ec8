"""What a group is made of: roles of peers, simulated learners, and the wordings of prompts."""

from functools import cache
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from tutorsim.catalog import BaseCatalog, read_catalog

__all__ = ["FIRST_TEXTS", "GroupCatalog", "Learner", "PeerRole", "RoleTask", "load_group_catalog"]

FIRST_TEXTS: Final = {
    "task_of_role": "$number. $text Expected: $expected",
    "learner_among_others": "$name (the learner)",
}
"""What was said before recordings held these templates. A text here never changes."""

ClassroomFunction = Literal["teaching", "discussion", "companionship", "management"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RoleTask(_Part):
    """One of a role's numbered tasks."""

    text: str = Field(min_length=1)
    expected: str = Field(min_length=1)
    """What comes out of it."""
    functions: tuple[ClassroomFunction, ...] = ()
    """Classroom functions that it serves."""


class PeerRole(_Part):
    """A kind of peer."""

    title: str = Field(min_length=1)
    """How prompts name the role, without an article."""
    goal: str = Field(min_length=1)
    expertise: str = Field(min_length=1)
    style: str = Field(min_length=1)
    interests: str = Field(min_length=1)
    tasks: tuple[RoleTask, ...] = Field(min_length=1)


class Learner(_Part):
    """A simulated learner."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")
    """Its name in the chat."""
    character: str = Field(min_length=1)
    """How it behaves, in whole sentences."""


class GroupCatalog(BaseCatalog):
    """All roles, learners and templates that a study of groups can name."""

    roles: dict[str, PeerRole]
    learners: dict[str, Learner]


@cache
def load_group_catalog() -> GroupCatalog:
    """The shipped roles, learners and prompts."""
    return read_catalog(GroupCatalog, "tutorsim.systems.group")
