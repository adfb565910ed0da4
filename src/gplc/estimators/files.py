"""Fitted estimators to and from files."""

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from gplc._files import FileError, refusing
from gplc._types import Array
from gplc._version import __version__
from gplc.estimators.stacking import is_stack, load_stack
from gplc.kernels import Leaf, from_record, to_record
from gplc.means import from_mean_record, mean_record
from gplc.models.in_basis import InBasis
from gplc.priors import (
    DEFAULTS,
    PriorLike,
    keys_of,
    kind,
    prior_from_record,
    prior_record,
)
from gplc.processes.hilbert import Axes, Hilbert
from gplc.processes.inducing import Inducing, Points
from gplc.storage import FIT, Saved, save_fit, seed_record
from gplc.transforms import FUNCTIONS

if TYPE_CHECKING:
    from gplc.estimators.base import BaseGP


# The estimator of every model, by the model's key; subclasses of BaseGP enter themselves.
ESTIMATORS: dict[str, type["BaseGP"]] = {}

# Settings that are kernels, of any estimator.
KERNEL_SETTINGS = ("kernel", "kernel_z")


def renamed(settings: Mapping[str, Any], old_names: Mapping[str, str]) -> dict[str, Any]:
    """Settings with what is given under an old name entered under the new one.

    Examples
    --------
    >>> renamed({"scale": "abs", "link": "log"}, {"scale": "link"})
    {'link': 'abs'}
    >>> renamed({"scale": None, "link": "log"}, {"scale": "link"})
    {'link': 'log'}
    """
    given = {new: settings[old] for old, new in old_names.items() if settings.get(old) is not None}
    return {name: value for name, value in settings.items() if name not in old_names} | given


def with_old_defaults(
    names: Iterable[str], priors: Mapping[str, PriorLike] | None
) -> dict[str, PriorLike]:
    """Priors, with those of length scales as they were before they went by the number of inputs.

    A fit of then goes on under the priors that it was made with.

    Examples
    --------
    >>> with_old_defaults(["length_scale_y[0]", "length_scale_z"], {"length_scale_z": (1.0, 0.5)})
    {'length_scale_z': (1.0, 0.5), 'length_scale_y[0]': LogNormal(mean=0.0, sd=1.0)}
    """
    given = dict(priors or {})
    scales = [name for name in names if kind(name) == "length_scale"]
    return given | {
        name: DEFAULTS["length_scale"] for name in scales if given.keys().isdisjoint(keys_of(name))
    }


def save(estimator: "BaseGP", path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file that `load` reads; see `BaseGP.save`."""
    if not isinstance(estimator.sampler, str):
        raise ValueError(
            "a fit with a scheme of your own cannot be saved, got "
            f"sampler={estimator.sampler!r}; use one of the model's schemes by name, or keep "
            "draws_.to_arviz()"
        )
    settings = estimator.get_params(deep=False)
    for name in KERNEL_SETTINGS:
        if settings.get(name) is not None:
            settings[name] = to_record(settings[name])
    settings["mean"] = mean_record(settings["mean"])
    settings["target_transform"] = estimator.transform_name
    settings["approximation"] = _basis_record(estimator)
    if settings["priors"] is not None:
        settings["priors"] = {
            name: prior_record(prior) for name, prior in settings["priors"].items()
        }
    if not isinstance(settings["random_state"], int | None):
        settings["random_state"] = None  # its seed is kept with the chains
    # A path in a file must never decide where something is written later.
    settings["checkpoint"] = settings["scheduler"] = None
    known = estimator.model_.known_noise
    save_fit(
        path,
        estimator.chains_,
        {
            "X": estimator.model_.X,
            "y": estimator.model_.y,
            "x_location": estimator.x_scaling_.location,
            "x_scale": estimator.x_scaling_.scale,
            "y_location": estimator.y_scaling_.location,
            "y_scale": estimator.y_scaling_.scale,
        }
        | ({} if known is None else {"known_sd": known.sds})
        | (estimator.model_.told() if isinstance(estimator.model_, InBasis) else {}),
        {
            "version": __version__,
            "estimator": type(estimator).__name__,
            "settings": settings,
            "seed": seed_record(estimator.seed_),
            "features": list(getattr(estimator, "feature_names_in_", [])),
            "target": estimator.target_name_,
            "data": {
                "given": estimator.n_given_,
                "dropped": estimator.n_dropped_,
                "resolution": estimator.resolution_,
                "transform": None
                if estimator.transform_ is None
                else estimator.transform_.record(),
            }
            | ({} if estimator.columns_ is None else {"columns": estimator.columns_.record()}),
            "origin": dict(estimator.origin_),
            "diagnostics": estimator._in_users_units(
                estimator.diagnostics_, back=True
            ).to_record(),
        },
    )


def load(
    path: str | os.PathLike[str],
    *,
    kernels: Iterable[type[Leaf]] = (),
    mean: Callable[[Array], ArrayLike] | None = None,
    target_transform: Sequence[Callable[[Array], Array]] | None = None,
) -> Any:
    """A fit that `save` wrote: the estimator, fitted, with the same predictions.

    Parameters
    ----------
    path : path
    kernels : iterable of classes
        Kernels of your own that the fit was made with; a file names them and holds no code.
    mean : callable, optional
        The mean function of your own that the fit was made with.
    target_transform : three functions, optional
        The transform of your own that the fit was made with.

    Returns
    -------
    StandardGP, LatentCovariateGP, LatentVarianceGP or another `BaseGP`; or a `Stack`
        An estimator of your own has to be defined (or imported) before.

    Examples
    --------
    >>> import tempfile, os
    >>> from gplc import StandardGP
    >>> model = StandardGP(chains=1, draws=10, warmup=10, random_state=0).fit([[0], [1]], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "fit.nc"))
    ...     again = load(os.path.join(folder, "fit.nc"))
    >>> bool(again.predict([[0.5]]) == model.predict([[0.5]]))
    True
    """
    if is_stack(path):
        return load_stack(path, lambda part: load(part, kernels=kernels, mean=mean))
    saved = Saved(path, FIT)
    name, version = saved.records["estimator"], saved.records["version"]
    known = {each.__name__: each for each in _with_variants(ESTIMATORS.values())}
    if name not in known:
        raise FileError(
            f"{path} holds a fit of {name!r} by gplc {version}, which this version "
            f"({__version__}) does not know; import the module that defines it, or use that "
            "version"
        )
    # What the schema does not tell is found out by making it.
    with refusing(path):
        settings = renamed(saved.records["settings"], known[name].old_names)
        for setting in KERNEL_SETTINGS:
            if settings.get(setting) is not None:
                settings[setting] = from_record(settings[setting], kernels)
        settings["mean"] = from_mean_record(settings["mean"], mean)
        if settings["priors"] is not None:
            settings["priors"] = {
                key: prior_from_record(record) for key, record in settings["priors"].items()
            }
        if settings.get("target_transform") == FUNCTIONS:
            if target_transform is None:
                raise ValueError(
                    "the file was made with a transform of functions, which it does not hold; "
                    "give them, gplc.load(path, target_transform=...)"
                )
            settings["target_transform"] = tuple(target_transform)
        former = known[name].model_class.former_schemes.get(settings["sampler"], {})
        meant = [scheme for last, scheme in former.items() if saved.format <= last]
        settings["sampler"] = meant[0] if meant else settings["sampler"]
        if saved.format < 3 and saved.arrays["X"].shape[1] > 1:
            settings["priors"] = with_old_defaults(saved.records["names"], settings["priors"])
        given, axes, rows = _basis_from(settings.pop("approximation", None))
        return known[name](**settings, approximation=given)._restore(saved, axes, rows)


def _basis_record(estimator: "BaseGP") -> dict[str, Any]:
    """What was asked for, the axes that were chosen, and rows if not all are kept."""
    given: Any = estimator.approximation
    model = estimator.model_
    return {
        "given": dataclasses.asdict(given) if isinstance(given, Hilbert | Inducing) else given,
        "axes": model.axes.record() if isinstance(model, InBasis) else None,
    } | ({"rows": model.rows.n} if isinstance(model, InBasis) and model.rows.n > model.n else {})


def _basis_from(record: Any) -> tuple[Any, Axes | Points | None, int | None]:
    """All of it, from what `_basis_record` gave; older files have exact fits."""
    if record is None:
        return "auto", None, None
    given, axes = record["given"], record["axes"]
    if isinstance(given, dict):
        given = Inducing(**given) if "points" in given else Hilbert(**given)
    made: Axes | Points | None = None
    if axes is not None:
        made = Points.from_record(axes) if "points" in axes else Axes.from_record(axes)
    return given, made, record.get("rows")


def _with_variants(classes: Iterable[type["BaseGP"]]) -> Iterator[type["BaseGP"]]:
    """Classes and all their subclasses."""
    for each in classes:
        yield each
        yield from _with_variants(each.__subclasses__())
