"""The type of nearly every array here."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
