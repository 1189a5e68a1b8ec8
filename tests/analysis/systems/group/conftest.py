"""Tables of records that no run folder holds."""

from types import SimpleNamespace

from tutorsim.analysis.systems.group.exported_tables_messages_to_rate import TABLES

RUN = SimpleNamespace(study=SimpleNamespace(name="x"), recording_digest="0" * 64, panels={})


def thoughts(records):
    """The table of thoughts."""
    return TABLES["thoughts"].frame(records, RUN)
