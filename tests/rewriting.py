"""Keeps pytest from rewriting the assertions of the product.

The product has a pytest plugin, so pytest would rewrite every module of it, as it does with tests:
twenty seconds of a fresh run. Its few assertions need no better message.
"""

import sys

for finder in sys.meta_path:
    marked = getattr(finder, "_must_rewrite", None)  # pytest has no public way to unmark a package
    if isinstance(marked, set):
        marked.discard("tutorsim")
