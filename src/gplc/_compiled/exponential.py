"""The exponential function, written so that loops over it work on several entries at once."""

import numpy as np
from numba import njit

# Adding 1.5 * 2^52 rounds a small number to an integer and leaves it in the lowest bits.
_TO_INTEGER = 6755399441055744.0
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.6931471803691238  # its trailing zeros make k * _LN2_HIGH exact
_LN2_LOW = 1.9082149292705877e-10


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def exp_of_negative(x: float) -> float:
    """exp(x) for x <= 0, within 2 units in the last place; 0 below -708.

    exp(x) = 2^k exp(r) with |r| <= ln(2) / 2; exp(r) by a near-minimax polynomial of degree 11.
    """
    clipped = max(x, -708.0)
    shifted = clipped * _LOG2_E + _TO_INTEGER
    k = shifted - _TO_INTEGER
    r = clipped - k * _LN2_HIGH - k * _LN2_LOW
    rr = r * r
    # Even and odd powers apart: two short chains run side by side, one long one would not.
    even = 2.763279054211718e-07
    even = even * rr + 2.4801485074105115e-05
    even = even * rr + 0.0013888888952696516
    even = even * rr + 0.04166666666648666
    even = even * rr + 0.5000000000000019
    even = even * rr + 1.0
    odd = 2.511015364692893e-08
    odd = odd * rr + 2.7557240604663896e-06
    odd = odd * rr + 0.00019841269890340666
    odd = odd * rr + 0.00833333333331949
    odd = odd * rr + 0.1666666666666668
    odd = odd * rr + 1.0
    # Multiply by 2^k by adding k to the exponent's bits.
    exponent = np.float64(shifted).view(np.int64) << 52
    value = np.int64(np.float64(even + r * odd).view(np.int64) + exponent).view(np.float64)
    return value if x >= -708.0 else 0.0
