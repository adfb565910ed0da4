"""Numbers printed in Wang and Neal (2012), for comparison."""

from collections.abc import Mapping

import numpy as np

from gplc._types import Array


def _table(text: str) -> Array:
    return np.array([line.split() for line in text.split("\n") if line.strip()], dtype=np.float64)


# Appendix: NLPD of STD (printed as REG), GPLC, GPLV, then MSE of the three; a row a training set.
APPENDIX: Mapping[str, Array] = {
    "U1": _table(
        """
        0.3364  0.2459  0.2480  0.0119  0.0088  0.0059
        0.3259  0.2489  0.2076  0.0077  0.0039  0.0058
        0.3142  0.2774  0.2661  0.0060  0.0144  0.0139
        0.3198  0.2273  0.2237  0.0077  0.0065  0.0058
        0.3231  0.2296  0.2185  0.0076  0.0071  0.0073
        0.3596  0.2397  0.2321  0.0137  0.0105  0.0110
        0.3404  0.2696  0.2374  0.0040  0.0030  0.0030
        0.3683  0.3143  0.3305  0.0081  0.0079  0.0080
        0.3177  0.2023  0.2172  0.0061  0.0057  0.0055
        0.2961  0.3050  0.2107  0.0017  0.0018  0.0020
        """
    ),
    "U2": _table(
        """
        0.2878  0.1976  0.2408  0.0070  0.0035  0.0034
        0.2616  0.1099  0.1349  0.0026  0.0009  0.0007
        0.2527  0.1123  0.1488  0.0013  0.0025  0.0035
        0.2697  0.1148  0.1998  0.0042  0.0036  0.0037
        0.2695  0.1275  0.1985  0.0030  0.0036  0.0030
        0.2599  0.1396  0.1769  0.0025  0.0052  0.0032
        0.2544  0.1130  0.1948  0.0010  0.0015  0.0017
        0.2708  0.0811  0.1283  0.0046  0.0019  0.0017
        0.2863  0.0833  0.1353  0.0049  0.0020  0.0027
        0.2727  0.1245  0.1670  0.0033  0.0023  0.0021
        """
    ),
    "M1": _table(
        """
        0.4726  0.3202  0.3407  0.0186  0.0120  0.0201
        0.3852  0.3046  0.2860  0.0121  0.0113  0.0098
        0.4560  0.3390  0.3410  0.0305  0.0247  0.0277
        0.4300  0.3860  0.3751  0.0204  0.0188  0.0201
        0.4817  0.4321  0.3906  0.0426  0.0399  0.0351
        0.4668  0.3603  0.3024  0.0364  0.0247  0.0163
        0.4282  0.3656  0.3799  0.0195  0.0172  0.0171
        0.4184  0.3198  0.4022  0.0197  0.0148  0.0217
        0.4161  0.3281  0.3817  0.0202  0.0204  0.0297
        0.4253  0.3269  0.3201  0.0216  0.0190  0.0197
        """
    ),
    "M2": _table(
        """
        0.3736  0.2413  0.2980  0.0099  0.0092  0.0093
        0.3934  0.2458  0.2965  0.0136  0.0099  0.0122
        0.4015  0.2695  0.2832  0.0167  0.0105  0.0128
        0.4819  0.3636  0.4202  0.0391  0.0174  0.0489
        0.4311  0.3257  0.3548  0.0269  0.0234  0.0230
        0.4348  0.2678  0.3140  0.0216  0.0165  0.0176
        0.3892  0.2479  0.2770  0.0102  0.0065  0.0083
        0.3709  0.3147  0.2580  0.0058  0.0052  0.0067
        0.4043  0.2441  0.2899  0.0156  0.0124  0.0146
        0.4718  0.3355  0.3923  0.0403  0.0223  0.0281
        """
    ),
}

# Autocorrelation times adjusted for computation time, in unstated units (table 3).
AUTOCORRELATION_TIMES: Mapping[str, tuple[float, ...]] = {
    "paper": (3.06, 4.92, 3.09, 10.63, 0.32, 0.46),
    "metropolis": (2.81, 11.21, 2.73, 27.26, 13.78, 13.92),
    "slice": (13.37, 16.71, 11.85, 23.65, 37.81, 53.81),
}

# Share of modified Metropolis proposals that are accepted (section 4.3).
ACCEPTANCE = 0.014

# Log density of GPLV at the prior mean, where its runs start, on its own data (section 4.3).
STARTING_DENSITY = -13.0

# NLPD of the true density: the floor. Not in the paper; expected over the inputs.
ORACLE: Mapping[str, float] = {"U1": 0.1469, "U2": 0.0564, "M1": 0.1962, "M2": 0.1056}


def nlpd(dataset: str) -> Array:
    """NLPD of (STD, GPLC, GPLV), a row for each training set.

    Examples
    --------
    >>> nlpd("U1").mean(axis=0).round(3).tolist()
    [0.33, 0.256, 0.239]
    """
    return APPENDIX[dataset][:, :3]


def mse(dataset: str) -> Array:
    """MSE of (STD, GPLC, GPLV), a row for each training set.

    Examples
    --------
    >>> mse("M1").mean(axis=0).round(4).tolist()
    [0.0242, 0.0203, 0.0217]
    """
    return APPENDIX[dataset][:, 3:]
