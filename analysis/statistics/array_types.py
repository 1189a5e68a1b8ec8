"""The types of arrays, declared once for every room."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.signedinteger[Any]]
"""Whole numbers of any width."""
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
"""Bytes of bits or of random draws."""
OutcomeBits = NDArray[np.uint16]
"""Two bytes, each an outcome in bits: 0 is nobody, c + 1 is candidate c. In the lower byte ties go
to the fallback order, in the upper one they stay."""
Vectors = NDArray[np.floating[Any]]
"""Embeddings of texts, shape (texts, dimensions)."""
Numbers = NDArray[np.number]
"""Counts or weights."""
Objects = NDArray[np.object_]
"""Texts, or whole numbers of any size."""
Anything = NDArray[Any]
"""An array whose type does not matter."""
