"""What estimators give back besides arrays and distributions."""

from typing import Any, NamedTuple

from gplc._frames import Rows
from gplc._types import Array
from gplc.processes.hilbert import Axes
from gplc.processes.inducing import Points


class _Ends(NamedTuple):
    mean: Array
    lower: Array
    upper: Array


class Band(_Ends):
    """Posterior of a quantity at every row: its mean and an equal-tailed interval, each (n,).

    Examples
    --------
    >>> import numpy as np
    >>> Band(np.array([2.0]), np.array([1.0]), np.array([4.0])).to_frame()
       mean  lower  upper
    0   2.0    1.0    4.0
    """

    rows = Rows()

    def to_frame(self) -> Any:
        """The band as a table of the kind that X was, with its index; pandas by default."""
        return self.rows.frame(self._asdict())


class ApproximationWarning(UserWarning):
    """A basis is too small for the length scales that were found."""


class Approximated(NamedTuple):
    """The basis that a fit was made in, in standard units.

    Examples
    --------
    >>> from gplc.processes.hilbert import Axes, axis_for
    >>> print(Approximated(Axes((axis_for(-1.0, 1.0, 0.5, 1.0),)), error=2e-4))
    Hilbert-space basis, functions: 14 of input 0; covariances are good to 0.02%
    """

    axes: Axes | Points
    # Of covariances, as a share of the variance, where the posterior is. With points: the share of
    # the variance of f that they leave out.
    error: float

    def __str__(self) -> str:
        if isinstance(self.axes, Points):
            count = len(self.axes.rows)
            return (
                f"{count} inducing points, which leave out {self.error:.2%} of the variance of f"
            )
        sizes = [f"{axis.functions} of input {k}" for k, axis in enumerate(self.axes.inputs)]
        sizes += [] if self.axes.latent is None else [f"{self.axes.latent.functions} of w"]
        return (
            f"Hilbert-space basis, functions: {', '.join(sizes)}; covariances are good to "
            f"{self.error:.2%}"
        )


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while sampling. The draws made so far are kept in `model`, which is fitted.

    It goes on up like any interrupt, so that loops and searches around a fit stop too.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(
            f"{model.diagnostics_.stopped} The fit is the attribute `model` of this error: "
            "model = sys.last_value.model"
        )
        self.model = model

    def __reduce__(self) -> Any:
        """From another process it comes with its fit."""
        return type(self), (self.model,)
