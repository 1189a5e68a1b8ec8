"""The types of arrays, declared once for every room."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.signedinteger[Any]]
"""Whole numbers of any width."""
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
