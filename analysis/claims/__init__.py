"""Numbers that are printed, as claims: each with an id, a question and what gave it.

* claims_of_printed_numbers: the numbers of a text or a table as claims, and those of a page
* claims_file: the file of claims, and its claims beside the same numbers, computed again
"""

from tutorsim.analysis.claims.claims_file import (
    CLAIMS_VERSION,
    Checked,
    Claim,
    ClaimsFile,
    Difference,
    check_claims,
    chosen,
    citation,
    cited,
    read_claims,
    to_text,
)
from tutorsim.analysis.claims.claims_of_printed_numbers import Cells, Printed, Words, claims_in

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
