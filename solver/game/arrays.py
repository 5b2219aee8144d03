"""The arrays that every room hands to every other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FLOAT64_ERROR = 1e-12
"""What the sums of a payoff lose in float64, with room to spare."""
