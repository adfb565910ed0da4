"""Mean functions whose coefficients are integrated out.

A coefficient with a Gaussian prior is one more Gaussian term of the process, so that a mean is an
addition to the kernel, exact and without a parameter to sample: an unknown level b_0 ~ N(0, s^2)
adds s^2 to every covariance, a slope b_k ~ N(0, s^2) adds s^2 x_k x'_k.
"""

from dataclasses import dataclass
from typing import Any

from gplc import _check
from gplc.kernels import Constant, Kernel, Linear

# Prior SD of coefficients, in SDs of y and for inputs of SD 1: wide, and still well conditioned.
WIDE = 3.0


@dataclass(frozen=True)
class ConstantMean:
    """b_0, with b_0 ~ N(0, sd^2).

    Parameters
    ----------
    sd : float
        On the scale of y as the model sees it (standardized, in an estimator).

    Examples
    --------
    >>> ConstantMean().kernel()
    Constant(sd=3.0)
    """

    sd: float = WIDE

    def __post_init__(self) -> None:
        _check.number("sd", self.sd, above=0.0, advice="3.0 is wide for standardized y")

    def kernel(self) -> Kernel:
        """What it adds to the covariance."""
        return Constant(self.sd)


@dataclass(frozen=True)
class LinearMean:
    """b_0 + sum_k b_k x_k, all b ~ N(0, sd^2).

    Parameters
    ----------
    sd : float
        As in `ConstantMean`.

    Examples
    --------
    >>> LinearMean().kernel()
    Constant(sd=3.0) + Linear(sd=3.0).on('x')
    """

    sd: float = WIDE

    def __post_init__(self) -> None:
        _check.number("sd", self.sd, above=0.0, advice="3.0 is wide for standardized data")

    def kernel(self) -> Kernel:
        """What it adds to the covariance."""
        return Constant(self.sd) + Linear(sd=self.sd).on("x")


# What a model takes as a mean; a function of the user's is the estimators' business.
Mean = str | ConstantMean | LinearMean | None

MEANS = {"constant": ConstantMean(), "linear": LinearMean()}


def with_mean(kernel: Kernel, mean: Any) -> Kernel:
    """The kernel with what a mean adds to it.

    Examples
    --------
    >>> with_mean(Constant(1.0), "constant")
    Constant(sd=1.0) + Constant(sd=3.0)
    """
    if mean is None or mean == "zero":
        return kernel
    if not isinstance(mean, ConstantMean | LinearMean):
        mean = MEANS[_check.one_of("mean", mean, ["zero", *MEANS])]
    return kernel + mean.kernel()


def mean_record(mean: Any) -> dict[str, Any] | str | None:
    """A mean in JSON's terms; of a function of the user's only that it is one.

    Examples
    --------
    >>> mean_record(LinearMean(2.0))
    {'kind': 'LinearMean', 'sd': 2.0}
    """
    if isinstance(mean, ConstantMean | LinearMean):
        return {"kind": type(mean).__name__, "sd": mean.sd}
    return {"kind": "function"} if callable(mean) else mean


def from_mean_record(record: Any, function: Any = None) -> Any:
    """The mean of a record; `function` is the user's own, if it has to be one.

    Examples
    --------
    >>> from_mean_record({"kind": "LinearMean", "sd": 2.0})
    LinearMean(sd=2.0)
    """
    if not isinstance(record, dict):
        return record
    kinds = {"ConstantMean": ConstantMean, "LinearMean": LinearMean}
    if record["kind"] in kinds:
        return kinds[record["kind"]](record["sd"])
    if not callable(function):
        raise ValueError(
            "the file was made with a mean function, which it does not hold; give the function, "
            "gplc.load(path, mean=...)"
        )
    return function
