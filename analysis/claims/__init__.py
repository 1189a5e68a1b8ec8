"""Numbers that are printed, as claims: each with an id, a question and what gave it.

* numbers_in_text: the numbers of a text, and what looks like one and is a name
* claim_ids: ids of places in a page, and of cells in a table
* claims_in_tables: from texts and tables that are printed to claims
* claims_file: the file of claims
* recomputation: claims of a file beside the same numbers, computed again
* drawn_pages: the numbers of the page itself beside them
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
