"""Posterior draws, by name."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gplc import _check, _html
from gplc._frames import Rows
from gplc._types import Array
from gplc._units import Units
from gplc.chains import Chain
from gplc.models.base import Model, Unknowns

NODE_RULES = ("stratified", "random")

# Groups for ArviZ: those that the draws alone make, and those that take the model and its data.
OWN_GROUPS = ("posterior", "sample_stats")
MORE_GROUPS = (
    "log_likelihood",
    "posterior_predictive",
    "observed_data",
    "prior",
    "prior_predictive",
)


def latent_nodes(
    rng: np.random.Generator,
    draws: int,
    count: int,
    rule: str = "stratified",
    columns: int = 1,
) -> Array:
    """Standard normal numbers for what is not known of a new case, a set for every draw.

    Stratified: Phi^-1((s + u) / count) for s = 0, ..., count - 1, one in each slice of equal
    probability, with a shift u ~ U(0, 1) that belongs to the draw. The same nodes in every draw
    would put the narrow components of all draws at the same places. Random: independent
    numbers, as in the paper. With several columns each set has `count` numbers for the first, then
    for the second, and so on; those of one column are paired with those of another at random.

    Examples
    --------
    >>> import numpy as np
    >>> latent_nodes(np.random.default_rng(0), draws=2, count=3).round(1).tolist()
    [[-0.8, 0.1, 1.2], [-1.3, -0.2, 0.7]]
    """
    if columns > 1:
        # A generator for each column: more draws leave the nodes of the first ones as they were.
        each_of, again = rng.spawn(columns), rng.spawn(columns)
        parts = [latent_nodes(each, draws, count, rule) for each in each_of]
        shuffled = [each.permuted(part, axis=1) for each, part in zip(again, parts, strict=True)]
        return np.hstack([parts[0], *shuffled[1:]])
    if rule == "random":
        return rng.standard_normal((draws, count))
    shifts = rng.uniform(1e-12, 1.0, size=(draws, 1))
    return ndtri((np.arange(count) + shifts) / count)


@dataclass(frozen=True)
class Draws(Mapping[str, Array]):
    """Draws of all unknowns, as arrays whose first two axes are chain and draw.

    A mapping from names to arrays: hyperparameters on their natural (not log) scale and in the
    units of the data, the latent values as ``"w"`` or ``"z"``, and ``"log_density"``.
    Hyperparameters with an index (``length_scale[0]``, ...) come together in one array. Latent
    values and the log density are those of standardized data.

    Attributes
    ----------
    names : tuple of str
        Log hyperparameters, in the order of the last axis of theta.
    theta : (chains, draws, k) array
        Log hyperparameters.
    latent : (chains, draws, n_latent) array
        Latent values.
    log_density : (chains, draws) array
        Log of prior times likelihood.
    judged : (chains, draws, kinds, landmarks) array
        What is kept of each draw at the landmarks of the model; see `Model.judged`.
    nodes : (chains, draws, count) array
        Standard normal numbers for the latent value of a new case; they belong to the draw.
    model_class : type of Model
        The model they are of, which says what its latent values are called.
    latent_columns : int
        Latent values of a case; with several, ``"w"`` is (chains, draws, latent_columns, n).
    landmarks : tuple of int
        Numbers of the training rows that are landmarks.
    units : Units, optional
        Makes hyperparameters be in the units of the user's columns; standard ones without it.
        `theta`, `latent`, `log_density` and `judged` are in standard units always.
    companions : callable, optional
        Gives more groups for ArviZ by name, of those asked for: what a fit knows besides.
    """

    names: tuple[str, ...]
    theta: Array
    latent: Array
    log_density: Array
    judged: Array
    nodes: Array
    model_class: type[Model] = Model  # type: ignore[type-abstract]
    latent_columns: int = 1
    landmarks: tuple[int, ...] = ()
    units: Units | None = None
    companions: Callable[[Sequence[str]], Mapping[str, Any]] | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def _units(self) -> Units:
        return self.units or Units.standard(self.names)

    def standardized(self) -> "Draws":
        """The same draws with hyperparameters in standard units: X and y of mean 0 and SD 1."""
        return dataclasses.replace(self, units=None)

    @classmethod
    def from_chains(
        cls,
        chains: Sequence[Chain],
        seeds: Sequence[np.random.SeedSequence],
        model: Model,
        n_nodes: int,
        rule: str = "stratified",
    ) -> "Draws":
        """Gather chains of a model, and give every draw its nodes.

        The nodes of a chain come from a seed of its own, in order: more draws of the same chain
        leave those of the first ones as they were.
        """
        draws = chains[0].log_density.size
        return cls(
            chains[0].names,
            np.stack([chain.theta for chain in chains]),
            np.stack([chain.latent for chain in chains]),
            np.stack([chain.log_density for chain in chains]),
            np.stack([chain.judged for chain in chains]),
            np.stack(
                [
                    latent_nodes(
                        np.random.default_rng(seed), draws, n_nodes, rule, model.node_size
                    )
                    for seed in seeds
                ]
            ),
            type(model),
            model.node_size,
            tuple(model.landmarks.rows.tolist()),
        )

    @property
    def latent_name(self) -> str:
        """Name of the latent values; empty if the model has none."""
        return self.model_class.latent_name

    def __getitem__(self, name: str) -> Array:
        if name == "log_density":
            return self.log_density
        if self.latent_name and name == self.latent_name:
            if self.latent_columns == 1:
                return self.latent
            return self.latent.reshape(*self.log_density.shape, self.latent_columns, -1)
        places = [k for k, full in enumerate(self.names) if full.split("[")[0] == name]
        if not places:
            raise KeyError(f"{name!r}; there are {list(self)}")
        values = np.exp(self.theta[:, :, places]) * np.array(self._units.factors)[places]
        return values if "[" in self.names[places[0]] else values[:, :, 0]

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys(full.split("[")[0] for full in self.names)
        if self.latent_name:
            yield self.latent_name
        yield "log_density"

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        chains, draws = self.log_density.shape
        return f"Draws({chains} chains of {draws}: {', '.join(self)})"

    def to_arviz(self, groups: Sequence[str] | None = None) -> Any:
        """The draws, and what the fit says besides, as ArviZ takes them.

        Parameters
        ----------
        groups : sequence of str, optional
            Which of these; all by default. ``posterior`` and ``sample_stats`` are the draws.
            ``log_likelihood`` has log p(y_i | y_-i, draw), as in `loo`, of at most 1000 draws,
            and ``posterior_predictive`` new responses at the same inputs for the same draws, both
            on the scale of y; ``observed_data`` the responses; ``prior`` and
            ``prior_predictive`` 500 draws made before seeing them. Those after the second need
            the draws of a fitted estimator, and take a moment.

        Returns
        -------
        xarray.DataTree or arviz.InferenceData
            A DataTree, which ArviZ takes from version 1 on, or InferenceData where an older ArviZ
            is installed.

        Examples
        --------
        >>> import numpy as np
        >>> draws = Draws(("noise_sd",), np.zeros((2, 5, 1)), np.empty((2, 5, 0)),
        ...               np.zeros((2, 5)), np.zeros((2, 5, 4, 0)),
        ...               np.zeros((2, 5, 1)))
        >>> draws.to_arviz()["posterior"]["noise_sd"].shape
        (2, 5)
        """
        known = OWN_GROUPS if self.companions is None else OWN_GROUPS + MORE_GROUPS
        wanted = known if groups is None else tuple(groups)
        for each in wanted:
            _check.one_of("groups", each, known)
        made = self._own_groups()
        if self.companions is not None:
            made |= self.companions(wanted)
        made = {name: made[name] for name in wanted}
        try:
            from arviz import InferenceData
        except ImportError:
            import xarray

            return xarray.DataTree.from_dict(made)
        return InferenceData(**made)

    def _own_groups(self) -> dict[str, Any]:
        """The draws and their densities, as data sets of xarray."""
        import xarray

        labels: dict[str, Any] = {
            "chain": np.arange(self.theta.shape[0]),
            "draw": np.arange(self.theta.shape[1]),
        }
        sizes = [self[name].shape[2] for name in self if self._of_inputs(name)]
        n_inputs = max(sizes, default=0)
        axes = {name: self._last_axes(name, n_inputs) for name in self if name != "log_density"}
        if named := self._input_labels(n_inputs):
            labels["input"] = named
        posterior = xarray.Dataset(
            {
                name: (("chain", "draw", *last), self[name], self._attributes(name))
                for name, last in axes.items()
            },
            coords=labels,
        )
        several = {name: labels[name] for name in ("chain", "draw")}
        stats = xarray.Dataset({"lp": (("chain", "draw"), self.log_density)}, coords=several)
        return {"posterior": posterior, "sample_stats": stats}

    def to_frame(self) -> Any:
        """The hyperparameters as a pandas data frame: a row for each draw, a column for each.

        Columns are called after those of the data (``length_scale[age]``), and their units are in
        ``frame.attrs["units"]``.

        Examples
        --------
        >>> draws = Draws(("noise_sd",), np.zeros((2, 1, 1)), np.empty((2, 1, 0)),
        ...               np.zeros((2, 1)), np.zeros((2, 1, 0, 0)), np.zeros((2, 1, 1)))
        >>> draws.to_frame()
           chain  draw  noise_sd  log_density
        0      0     0       1.0          0.0
        1      1     0       1.0          0.0
        """
        chain, draw = np.indices(self.log_density.shape).reshape(2, -1)
        values = (np.exp(self.theta) * np.array(self._units.factors)).reshape(chain.size, -1).T
        columns = dict(zip(self._units.labels, values, strict=True))
        told = {"chain": chain, "draw": draw, **columns, "log_density": self.log_density.ravel()}
        frame = Rows().frame(told)
        frame.attrs["units"] = dict(zip(self._units.labels, self._units.units, strict=True))
        return frame

    def _repr_html_(self) -> str:
        quantiles = np.quantile(np.exp(self.theta), (0.05, 0.5, 0.95), axis=(0, 1))
        values = (quantiles * np.array(self._units.factors)).T.tolist()
        told = zip(self._units.labels, self._units.units, values, strict=True)
        rows = [[label, *each, unit] for label, unit, each in told]
        head = ["", "5%", "median", "95%", "unit"]
        return _html.table(head, rows) + _html.sentences(repr(self))

    def _attributes(self, name: str) -> dict[str, str]:
        """Units of an array, as xarray keeps them; none if its parts have different ones."""
        stems = zip(self.names, self._units.units, strict=True)
        units = {unit for full, unit in stems if full.split("[")[0] == name}
        return {"units": units.pop()} if len(units) == 1 and units != {""} else {}

    def _input_labels(self, count: int) -> list[str]:
        """Names of the inputs, if hyperparameters are called after them."""
        for name in self:
            if self._of_inputs(name) and self[name].shape[2] == count:
                stems = zip(self.names, self._units.labels, strict=True)
                found = [label for full, label in stems if full.split("[")[0] == name]
                return [label.partition("[")[2].removesuffix("]") for label in found]
        return []

    def _of_inputs(self, name: str) -> bool:
        """Whether an array has an entry for each input (or for some of them)."""
        return "length_scale" in name and "latent" not in name and self[name].ndim == 3

    def _last_axes(self, name: str, n_inputs: int) -> tuple[str, ...]:
        """Names of the axes after chain and draw."""
        if self.latent_name and name == self.latent_name:
            return ("case",) if self.latent_columns == 1 else ("covariate", "case")
        if self[name].ndim == 2:
            return ()
        if self._of_inputs(name) and self[name].shape[2] == n_inputs:
            return ("input",)
        return (f"{name} index",)  # a choice of inputs, or no inputs at all

    def thinned(self, most: int | None) -> list[tuple[Unknowns, Array]]:
        """Unknowns and nodes of at most `most` draws, evenly spaced over all chains.

        Those without a density are left out: a chain that has found no possible state yet is
        nowhere. All others can predict, if need be with a little more noise (`Dense.mended`).
        """
        draws = self.log_density.shape[1]
        return [
            (
                Unknowns(self.theta[chain, draw], self.latent[chain, draw]),
                self.nodes[chain, draw],
            )
            for chain, draw in (divmod(int(place), draws) for place in self.picked(most))
        ]

    def picked(self, most: int | None) -> NDArray[np.intp]:
        """Places of the draws that `thinned` takes, if all are numbered, chain after chain."""
        total = self.log_density.size
        count = total if most is None else min(most, total)
        places = (np.arange(count) * total) // count
        return places[self.log_density.ravel()[places] > -np.inf]
