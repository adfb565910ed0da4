"""Files of every format load for ever; damaged and forged ones are refused in one line."""

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray

import gplc
from gplc import _files, storage
from gplc._files import MAGIC, TRAILER, FileError
from gplc.chains import judged_of
from gplc.diagnostics import judged
from gplc.models import LatentVariance, Update
from gplc.models.landmarks import KINDS, TAILS
from gplc.priors import kind
from gplc.samplers import Slice

HEAVY = os.environ.get("GPLC_HEAVY") == "1"

DATA = Path(__file__).parents[1] / "data"
OLD = json.loads((DATA / "format-1.json").read_text(encoding="utf-8"))
FITS = sorted(name for name in OLD["predictions"] if name.endswith(".nc"))
# Fits that keep what is judged, and do not tell of their data yet.
FORMAT_3 = json.loads((DATA / "format-3.json").read_text(encoding="utf-8"))


def predictions(model):
    dist = model.predict_dist(OLD["rows"])
    return {
        "mean": dist.mean(),
        "std": dist.std(),
        "quantiles": dist.quantile([0.1, 0.5, 0.9]),
        "function": model.regression_function(OLD["rows"]).std(),
        "residual_sd": model.residual_sd(OLD["rows"]).mean,
    }


def same_predictions(model, name):
    for quantity, values in predictions(model).items():
        expected = OLD["predictions"][name][quantity]
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9, err_msg=quantity)


@pytest.fixture
def checkpoint(tmp_path):
    """A copy of the old checkpoint, which a run overwrites."""
    copy = tmp_path / "run.ckpt"
    copy.write_bytes((DATA / "format-1-gplv.ckpt").read_bytes())
    return copy


# Defaults of then, since when those of several inputs have changed.
OLD_PRIORS = {"length_scale": (0.0, 1.0)}


def resumed(path, **settings):
    settings = {"priors": OLD_PRIORS} | OLD["checkpoint"] | settings
    return gplc.LatentVarianceGP(**settings, checkpoint=path).fit(OLD["X"], OLD["y"])


# --- old formats ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMAT_3["predictions"])
def test_a_fit_of_format_3_predicts_what_it_did(name, tmp_path):
    model = gplc.load(DATA / name)
    expected = FORMAT_3["predictions"][name]
    mean, sd = model.predict(FORMAT_3["rows"], return_std=True)
    # These data have hardly any noise, which makes much of rounding, another one on each machine
    # (1e-7 of means was seen): variances are small differences.
    np.testing.assert_allclose(mean, expected["mean"], rtol=1e-6)
    np.testing.assert_allclose(sd, expected["sd"], rtol=1e-3, atol=1e-6)
    model.extend(1).save(tmp_path / "again.nc")
    assert gplc.load(tmp_path / "again.nc").diagnostics_.n_draws == 21


@pytest.mark.parametrize("name", FITS)
def test_a_fit_of_format_1_predicts_what_it_did(name, tmp_path):
    model = gplc.load(DATA / name)
    same_predictions(model, name)
    # Saved again it is of today's format, and can still be extended.
    model.save(tmp_path / "again.nc")
    assert _files.read(tmp_path / "again.nc", "fit").format == _files.FORMAT
    again = gplc.load(tmp_path / "again.nc")
    same_predictions(again, name)
    assert again.chains_[0].position.learned == model.chains_[0].position.learned


@pytest.mark.parametrize("name", FITS)
def test_what_is_judged_of_old_draws_is_computed_when_they_go_on(name, tmp_path):
    model = gplc.load(DATA / name)
    assert not any(row.startswith("sum") for row in model.diagnostics_.rows)
    assert list(judged(model.draws_)) == list(model.diagnostics_.rows)
    model.save(tmp_path / "again.nc")
    model = gplc.load(tmp_path / "again.nc")
    assert model.draws_.judged.size == 0
    before = model.draws_.theta.shape[1]
    model.extend(2)
    draws = model.draws_
    assert draws.judged.shape[1:] == (before + 2, *model.model_.judged_shape)
    for kept, theta, latent in zip(draws.judged, draws.theta, draws.latent, strict=True):
        np.testing.assert_allclose(kept, judged_of(model.model_, theta, latent), atol=1e-6)
    assert any(row.startswith("f(x) at row") for row in model.diagnostics_.rows)


def test_what_is_judged_of_another_model_is_refused(fit_file, tmp_path):
    kept = _files.read(fit_file, "fit").arrays["judged"]
    edited(fit_file, tmp_path / "forged.nc", arrays={"judged": kept[..., :-1]})
    assert "not what this model keeps" in outcome(tmp_path / "forged.nc")


def test_a_checkpoint_of_format_1_gives_its_draws(checkpoint):
    same_predictions(resumed(checkpoint), checkpoint.name.replace("run", "format-1-gplv"))


def test_an_old_checkpoint_with_other_default_priors_is_refused_by_name(checkpoint):
    with pytest.raises(FileError, match="priors was"):
        resumed(checkpoint, priors=None)


@pytest.mark.parametrize("name", FITS)
def test_an_old_fit_goes_on_under_the_priors_it_was_made_with(name, tmp_path):
    model = gplc.load(DATA / name)
    model.save(tmp_path / "again.nc")
    for fit in (model, gplc.load(tmp_path / "again.nc")):
        priors = fit.model_.priors
        for hyperparameter, mean, sd in zip(priors.names, priors.means, priors.sds, strict=True):
            if kind(hyperparameter) == "length_scale":
                assert (mean, sd) == (0.0, 1.0)


def test_old_settings_have_their_new_names():
    assert gplc.load(DATA / "format-1-gplv-abs.nc").link == "abs"


def test_a_newer_format_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "fit.nc"
    monkeypatch.setattr(_files, "FORMAT", 7)
    gplc.load(DATA / FITS[0]).save(path)
    monkeypatch.undo()
    with pytest.raises(FileError, match=r"is of format 7.*install a newer gplc"):
        gplc.load(path)


def other_scheme(model):
    return [Update(name, Slice()) for name in model.names]


@pytest.fixture
def changed_scheme(monkeypatch):
    """Another version of gplc, in which the default scheme of GPLV is another one."""
    monkeypatch.setattr(
        LatentVariance, "schemes", LatentVariance.schemes | {"default": other_scheme}
    )


@pytest.mark.usefixtures("changed_scheme")
def test_another_default_scheme_harms_no_file_until_it_goes_on(checkpoint, tmp_path):
    model = gplc.load(DATA / "format-1-gplv.nc")
    same_predictions(model, "format-1-gplv.nc")
    model.save(tmp_path / "again.nc")
    again = gplc.load(tmp_path / "again.nc")
    for fit in (model, again):
        with pytest.raises(FileError, match=r"cannot go on.*fit again"):
            fit.extend(1)
    same_predictions(resumed(checkpoint), "format-1-gplv.ckpt")
    with pytest.raises(FileError, match="cannot go on"):
        resumed(checkpoint, draws=9)


# --- damaged and forged files ----------------------------------------------------------------


def sealed(body):
    """A file with a right digest, whatever is in it."""
    return body + MAGIC + hashlib.sha256(body).hexdigest().encode()


@pytest.fixture(scope="module")
def fit_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "fit.nc"
    # A draw more: then it has all that today's files have.
    gplc.load(DATA / "format-1-gplc-sum.nc").extend(1).save(path)
    return path


def outcome(path):
    """The predictions of a file, or the line that refuses it; nothing else may come out."""
    try:
        model = gplc.load(path)
    except FileError as error:
        return str(error)
    with contextlib.suppress(FileError):
        model.extend(1)
    return model.predict(OLD["rows"])


def is_refused(path):
    found = outcome(path)
    return isinstance(found, str) and "\n" not in found


def test_flipped_bytes_with_a_right_digest(fit_file, tmp_path, note, largest_memory):
    """Bits flipped anywhere: the library's errors are ours, and what loads can be used."""
    before, longest = largest_memory(), 0.0
    rng = np.random.default_rng(2)
    body = fit_file.read_bytes()[:-TRAILER]
    path = tmp_path / "flipped.nc"
    refused = 0
    for place in rng.integers(len(body), size=1200 if HEAVY else 120):
        flipped = bytearray(body)
        flipped[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(sealed(bytes(flipped)))
        began = time.process_time()
        refused += is_refused(path)
        longest = max(longest, time.process_time() - began)
    note("refused", refused)
    note("longest file, with one iteration and a prediction (CPU s)", round(longest, 3))
    note("memory grew by (MB)", largest_memory() - before)
    assert refused > 10


def test_a_text_of_no_size_is_refused(fit_file, tmp_path):
    """From an entry of no size the library would never get on, and nothing could stop it."""
    body = bytearray(fit_file.read_bytes()[:-TRAILER])
    begin = body.find(_files.HEAP)
    place = begin + 16
    while (entry := _files.HEAP_ENTRY.unpack_from(body, place))[0]:
        place += 16 + (entry[3] + 7) // 8 * 8
    for size in (0, 8, 2**64 - 8):
        _files.HEAP_ENTRY.pack_into(body, place, 0, 0, 0, size)
        (tmp_path / "stuck.nc").write_bytes(sealed(bytes(body)))
        assert is_refused(tmp_path / "stuck.nc")


def edited(source, path, arrays=(), texts=(), **further):
    """A forged copy: arrays and texts replaced by what is given, or left out if that is None."""
    contents = _files.read(source, "fit")
    dataset = xarray.Dataset()
    for name, values in (contents.arrays | dict(arrays)).items():
        if values is not None:
            dataset[name] = ([f"{name} {axis}" for axis in range(np.ndim(values))], values)
    known = {name: contents.texts[name] for name in storage.TEXTS["fit"]}
    texts = known | dict(texts)
    dataset.attrs = {name: text for name, text in texts.items() if text is not None}
    _files.write(path, dataset.assign_attrs(further), "fit")


def forged_text(source, name, *places, value):
    """One of the JSON texts with the entry at `places` replaced."""
    record = json.loads(_files.read(source, "fit").texts[name])
    inside = record
    for place in places[:-1]:
        inside = inside[place]
    inside[places[-1]] = value
    return {name: json.dumps(record)}


def deep(levels):
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("name", storage.ARRAYS["fit"])
def test_forged_arrays_are_refused(name, fit_file, tmp_path):
    good = _files.read(fit_file, "fit").arrays[name]
    forgeries = {
        "missing": None,
        "int": np.zeros(good.shape, dtype=np.int64),
        "float32": good.astype(np.float32),
        "text": np.full(good.shape, "x"),
        "another dimension": good[..., None],
        "nan": np.full(good.shape, np.nan),
        "inf": np.full(good.shape, np.inf),
    }
    if name == "judged":  # nan is what could not be computed
        del forgeries["nan"]
    if good.ndim:
        forgeries |= {"longer": np.concatenate([good, good]), "empty": good[:0]}
    if good.ndim and name not in ("X", "y"):
        forgeries["flat"] = good.ravel()[:, None]
    if "theta" in name:
        forgeries["far"] = np.full(good.shape, 1e300)
    for what, values in forgeries.items():
        edited(fit_file, tmp_path / "forged.nc", arrays={name: values})
        assert is_refused(tmp_path / "forged.nc"), what


@pytest.mark.parametrize("value", [1e308, -1e308])
def test_huge_numbers_are_judged_without_a_warning_or_refused(value, fit_file, tmp_path):
    """A probability of 1e308 is refused; a density or an f(x) of that size is told to be bad."""
    arrays = _files.read(fit_file, "fit").arrays
    kinds = arrays["judged"].shape[2]
    for place in [None, *range(kinds)]:
        name = "log_density" if place is None else "judged"
        forged = arrays[name].copy()
        forged[(slice(None), 0) if place is None else (slice(None), 0, place, 0)] = value
        edited(fit_file, tmp_path / "huge.nc", arrays={name: forged})
        found = outcome(tmp_path / "huge.nc")
        is_tail = place is not None and place < len(KINDS) and KINDS[place] in TAILS
        assert isinstance(found, str) == is_tail, place


@pytest.mark.parametrize("name", sorted(set(storage.ARRAYS["fit"]) - {"log_density", "judged"}))
@pytest.mark.parametrize("value", [1e307, -1e307])
def test_a_huge_number_among_others_is_refused_or_does_no_harm(name, value, fit_file, tmp_path):
    """A bit of an exponent that flips makes such numbers; warnings are errors here."""
    forged = _files.read(fit_file, "fit").arrays[name].copy()
    forged[(0,) * forged.ndim] = value
    edited(fit_file, tmp_path / "huge.nc", arrays={name: forged})
    found = outcome(tmp_path / "huge.nc")
    assert isinstance(found, str) or np.isfinite(found).all()
    assert "Warning" not in str(found)  # refused for what it is


@pytest.mark.parametrize("name", storage.TEXTS["fit"])
@pytest.mark.parametrize(
    "text", [None, "", "{", "1e999", '"x"', "{}", "[1]", '{"a": {}}', deep(60), deep(100_000)]
)
def test_forged_texts_are_refused(name, text, fit_file, tmp_path):
    if (name, text) in [("version", '"x"'), ("target", '"x"')]:
        return  # any text will do
    if name == "origin" and text in (None, "{}"):
        return  # which was not always kept
    edited(fit_file, tmp_path / "forged.nc", texts={name: text})
    assert is_refused(tmp_path / "forged.nc")


FORGED_ENTRIES = [
    ("chains", (0, "iteration"), 10**30),
    ("chains", (0, "iteration"), -1),
    ("chains", (0, "generator", "state", "state"), -1),
    ("chains", (0, "generator", "bit_generator"), "MT19937"),
    ("chains", (1,), {}),
    ("chains", (0, "seconds"), {"draws": True}),
    ("names", (0,), "nonsense"),
    ("seed", (0, 0), -1),
    ("settings", ("nodes",), 10**12),
    ("settings", ("nodes",), "7"),
    ("settings", ("kernel",), {}),
    ("settings", ("kernel",), {"kind": "+", "parts": []}),
    ("settings", ("kernel",), {"kind": "Constant", "sd": "x"}),
    ("settings", ("kernel",), json.loads(deep(40))),
    ("settings", ("mean",), {}),
    ("settings", ("n_latent",), 10**12),
    ("settings", ("n_latent",), 2),
    ("settings", ("priors",), {"noise_sd": [0]}),
    ("settings", ("priors",), {"noise_sd": [0, 10**400]}),
    ("settings", ("sampler",), "nope"),
    ("settings", ("nonsense",), 1),
    ("settings", ("predictive_draws",), 0),
    ("diagnostics", ("rows", "log_density"), [1.0]),
    ("diagnostics", ("modes",), {"groups": [[0]]}),
]


@pytest.mark.parametrize(("name", "places", "value"), FORGED_ENTRIES)
def test_forged_entries_are_refused(name, places, value, fit_file, tmp_path):
    texts = forged_text(fit_file, name, *places, value=value)
    edited(fit_file, tmp_path / "forged.nc", texts=texts)
    assert is_refused(tmp_path / "forged.nc")


def test_learned_settings_are_not_looked_into_until_they_are_needed(fit_file, tmp_path):
    for learned in ("", "{", deep(100_000), '[{"settings": {}}]'):
        texts = forged_text(fit_file, "chains", 0, "learned", value=learned)
        edited(fit_file, tmp_path / "forged.nc", texts=texts)
        model = gplc.load(tmp_path / "forged.nc")
        with pytest.raises(FileError, match="cannot go on"):
            model.extend(1)


def test_more_rows_declared_than_the_file_has_room_for(fit_file, tmp_path):
    path = tmp_path / "forged.nc"
    path.write_bytes(fit_file.read_bytes()[:-TRAILER])
    with h5py.File(path, "r+") as file:
        del file["X"]
        file.create_dataset("X", shape=(10**9, 10), dtype="f8")  # takes no room until written
    path.write_bytes(sealed(path.read_bytes()))
    with pytest.raises(FileError, match="more numbers than it has room for"):
        gplc.load(path)


@pytest.mark.parametrize("what", ["chain in arrays", "chain", "draw"])
def test_forged_checkpoints_are_refused(what, checkpoint):
    """One chain, or one draw, is taken out: of the arrays alone, or of all that tells of it."""
    saved = storage.Saved(checkpoint, "checkpoint")
    if what == "chain":
        saved.records["chains"].pop()
    dataset = xarray.Dataset()
    for name, values in saved.arrays.items():
        if what == "draw":
            values = values if "position" in name else values[:, 1:]
        else:
            values = values[:1]
        dataset[name] = ([f"{name} {axis}" for axis in range(values.ndim)], values)
    dataset.attrs = {name: json.dumps(record) for name, record in saved.records.items()}
    dataset.attrs["fingerprint"] = json.dumps(
        saved.records["fingerprint"] | {"sampler": "'default'"}
    )
    _files.write(checkpoint, dataset, "checkpoint")
    with pytest.raises(FileError, match=r"run\.ckpt"):
        resumed(checkpoint)


def test_settings_changed_after_a_fit_do_not_spoil_its_file(tmp_path):
    model = gplc.load(DATA / "format-1-std.nc")
    expected = gplc.load(DATA / "format-1-std.nc").extend(2).predict(OLD["rows"])
    model.set_params(warmup=7, chains=5).save(tmp_path / "fit.nc")
    np.testing.assert_array_equal(
        gplc.load(tmp_path / "fit.nc").extend(2).predict(OLD["rows"]), expected
    )
