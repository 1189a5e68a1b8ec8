"""Numbers that are printed, as claims: each with an id, a question and what gave it.

* numbers: the numbers of a text, and what looks like one and is a name
* names: ids of places in a page, and of cells in a table
* printed: from texts and tables that are printed to claims
* record: the file of claims
* check: claims of a file beside the same numbers, computed again
"""

from tutorsim.analysis.claims.claims_file import (
    CLAIMS_VERSION,
    Claim,
    ClaimsFile,
    citation,
    cited,
    read_claims,
    to_text,
)
from tutorsim.analysis.claims.claims_in_tables import Cells, Printed, Words, claims_in
from tutorsim.analysis.claims.recomputation import Checked, Difference, check_claims, chosen

__all__ = [
    "CLAIMS_VERSION",
    "Cells",
    "Checked",
    "Claim",
    "ClaimsFile",
    "Difference",
    "Printed",
    "Words",
    "check_claims",
    "chosen",
    "citation",
    "cited",
    "claims_in",
    "read_claims",
    "to_text",
]
