"""Comparison of models: scores of rows left out, paired errors, and the words for them."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gplc
from gplc import comparison
from gplc.comparison import (
    CLEAR_P,
    LIKELY_P,
    Comparison,
    Difference,
    Evidence,
    Sign,
    compare,
    comparison_of,
    every_model,
    shape_of_residuals,
    sizes_vary,
)
from gplc.loo import stacked_density, stacking_weights
from gplc.models import MODELS

SMALL = {"chains": 1, "draws": 25, "warmup": 25, "random_state": 0}


def made(rhat=1.0, **means):
    """A comparison whose models differ by a constant and a little noise."""
    noise = np.random.default_rng(0).normal(size=(len(means), 200))
    scores = {
        name: mean + 0.1 * noise[k] + noise[0] for k, (name, mean) in enumerate(means.items())
    }
    return Comparison(scores, 5, dict.fromkeys(means, rhat))


def test_each_row_is_scored_by_a_fit_that_did_not_see_it():
    data = gplc.datasets.make_paper("U1", n=18, random_state=0)
    X, y = pd.DataFrame(data.X, columns=["x"]), pd.Series(data.y, name="y")
    settings = SMALL | {"chains": 2}
    model = gplc.StandardGP(**settings)
    seen = []
    result = compare(
        X, y, {"std": model}, folds=3, random_state=4, watch=lambda *done: seen.append(done)
    )
    expected, rhat = np.empty(18), 0.0
    for train, test in KFold(3, shuffle=True, random_state=4).split(X):
        fitted = gplc.StandardGP(**settings).fit(X.iloc[train], y.iloc[train])
        rhat = max(rhat, *(row.rhat for row in fitted.diagnostics_.rows.values()))
        expected[test] = -fitted.predict_dist(X.iloc[test]).logpdf(data.y[test])
    np.testing.assert_allclose(result.scores["std"], expected, rtol=1e-9)
    assert result.rhat == {"std": pytest.approx(rhat)}
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert not hasattr(model, "draws_")  # the caller's model is left alone


def test_every_model_takes_part():
    data = gplc.datasets.make_paper("U1", n=10, random_state=0)
    result = compare(data.X, data.y, every_model(**SMALL), folds=2)
    assert list(result.scores) == ["std", "gplv", "gplc"]
    assert len(result.answers) in (3, 4)
    assert json.loads(json.dumps(result.to_record()))["rows"] == 10


def test_by_default_each_row_is_left_out_by_itself():
    data = gplc.datasets.make_paper("U1", n=16, random_state=0)
    settings = SMALL | {"chains": 2, "draws": 40}
    models = {"std": gplc.StandardGP(**settings), "gplv": gplc.LatentVarianceGP(**settings)}
    seen = []
    result = compare(data.X, data.y, models, watch=lambda *done: seen.append(done))
    for name, model in models.items():
        expected = model.fit(data.X, data.y).loo()
        np.testing.assert_allclose(result.scores[name], -expected.log_density)
        assert result.uncertain[name] == expected.bad_rows.size
    assert seen == [(1, 2), (2, 2)]
    assert result.folds is None
    assert "16 rows each left out" in str(result)
    assert result.models["std"].predict(data.X).shape == (16,)
    piped = make_pipeline(StandardScaler(), gplc.StandardGP(**settings))
    assert compare(data.X, data.y, {"piped": piped}).scores["piped"].shape == (16,)
    again = comparison_of(models)
    assert again.weights == pytest.approx(result.weights)


def test_leave_one_out_refuses_what_it_cannot_do():
    X, y = np.arange(6.0)[:, None], np.arange(6.0)
    with pytest.raises(
        ValueError, match=r"models\['other'\] has no loo\(\), got Linear.* folds=5"
    ):
        compare(X, y, {"other": LinearRegression()})
    with pytest.raises(ValueError, match="groups must come with folds"):
        compare(X, y, groups=[0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match="refit must be an integer"):
        compare(X, y, refit=-1)
    with pytest.raises(ValueError, match="models is empty"):
        compare(X, y, {})
    one, other = (gplc.StandardGP(**SMALL).fit(X, y + shift) for shift in (0.0, 1.0))
    with pytest.raises(ValueError, match="'a' and 'b' were fitted to different rows"):
        comparison_of({"a": one, "b": other})


def test_stacking_weights_are_the_best_there_are():
    """Against a search over a grid of mixtures of two, and a concave optimum of three."""
    rng = np.random.default_rng(0)
    logs = rng.normal(size=(3, 40))
    weights = stacking_weights(logs)
    assert weights.sum() == pytest.approx(1.0)
    best = stacked_density(logs, weights).sum()
    for other in rng.dirichlet(np.ones(3), size=300):
        assert stacked_density(logs, other).sum() <= best + 1e-6
    result = made(std=1.0, gplv=0.5, gplc=3.0)
    assert result.weights["gplc"] < 0.01
    assert sum(result.weights.values()) == pytest.approx(1.0)
    assert "weight" in str(result)


def test_uncertain_rows_are_mentioned():
    scores = made(std=1.0, gplv=0.5)
    loo = {
        name: SimpleNamespace(
            bad_rows=np.arange(count),
            pit=np.linspace(0.01, 0.99, 200),
            dist=SimpleNamespace(std=lambda: np.ones(200) + np.arange(200) % 2),
        )
        for name, count in (("std", 0), ("gplv", 3))
    }
    models = dict.fromkeys(loo, at_inputs(np.linspace(-2.0, 2.0, 200)[:, None]))
    told = Comparison(scores.scores, None, scores.rhat, models, loo).answers
    assert "uncertain (GPLV 3): refit= samples again without them." in told[1]


def left_out(scores, sds=None):
    """What is asked of leave-one-out: where rows fall, and how wide predictions are."""
    spread = np.ones(scores.size) if sds is None else sds
    return SimpleNamespace(
        pit=norm.cdf(scores), dist=SimpleNamespace(std=lambda: spread), bad_rows=np.arange(0)
    )


def at_inputs(X):
    """What is asked of a fitted model: its inputs in standard units."""
    return SimpleNamespace(model_=SimpleNamespace(X=X))


def test_signs_say_no_more_often_than_chance_if_there_is_nothing():
    """At most 2 x 2.3% of 200 sets, and 3.5 SDs on top: false alarm below 1e-3."""
    rng = np.random.default_rng(0)
    signs = []
    for _ in range(200):
        noise, X = rng.standard_normal(60), rng.standard_normal((60, 1))
        signs.append(sizes_vary(at_inputs(X), left_out(noise)).p_value)
        signs.append(shape_of_residuals(left_out(noise), "GPLV").p_value)
    assert np.mean(np.array(signs) < LIKELY_P) < LIKELY_P + 3.5 * np.sqrt(LIKELY_P / 400)


def test_signs_are_seen_where_there_are_some():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((100, 1))
    noise = np.exp(np.sin(2.0 * X[:, 0])) * rng.standard_normal(100)
    sign = sizes_vary(at_inputs(X), left_out(noise / 1.5))
    assert sign.p_value < CLEAR_P
    assert "sizes of residuals change along the inputs: so much by chance in 0.05 " in sign.told
    skewed = shape_of_residuals(left_out(rng.exponential(size=100) - 1.0), "GPLV")
    assert skewed.p_value < CLEAR_P
    assert "skewness 1." in skewed.told
    assert shape_of_residuals(left_out(rng.exponential(size=15)), "GPLV").p_value == 1.0


@pytest.mark.parametrize(
    ("sizes", "shape", "advice"), [(0.5, 0.5, "std"), (0.01, 0.5, "gplv"), (0.01, 0.01, "gplc")]
)
def test_advice_follows_the_answers(monkeypatch, sizes, shape, advice):
    """Where scores alone cannot tell, signs in the residuals of rows left out decide."""
    monkeypatch.setattr(comparison, "sizes_vary", lambda *_: Sign("Sizes.", sizes))
    monkeypatch.setattr(comparison, "shape_of_residuals", lambda *_: Sign("Shape.", shape))
    noise = np.random.default_rng(0).normal(size=(3, 200))
    means = {"std": 1.02, "gplv": 1.01, "gplc": 1.0}
    scores = {name: mean + noise[k] for k, (name, mean) in enumerate(means.items())}
    scores = {name: each - each.mean() + means[name] for name, each in scores.items()}
    loo = dict.fromkeys(means, left_out(np.zeros(200)))
    models = dict.fromkeys(means, SimpleNamespace())
    assert Comparison(scores, None, dict.fromkeys(means, 1.0), models, loo).advice == advice


@pytest.mark.parametrize(
    ("mean", "p_value", "word"),
    [
        (0.01, 0.5, "not"),
        (0.01, 0.02, "probably"),
        (0.01, 0.001, "clearly"),
        (-0.01, 0.001, "not"),  # the richer model does not predict better
        (-0.5, 0.001, "worse"),
        (0.5, 1.0, "clearly"),
    ],
)
def test_signs_count_if_the_richer_model_is_no_worse(mean, p_value, word):
    evidence = Evidence("std", "gplv", Difference(mean, 0.1), Sign("Told.", p_value))
    assert evidence.word == word
    assert evidence.found == (word in ("clearly", "probably"))


def test_standard_errors_are_paired():
    result = made(std=1.0, gplv=0.9, gplc=0.9)
    pairs = result.scores["std"] - result.scores["gplv"]
    difference = result.difference("std", "gplv")
    assert difference.mean == pytest.approx(pairs.mean())
    assert difference.se == pytest.approx(pairs.std(ddof=1) / np.sqrt(200))
    assert difference.se < 0.02 < result.scores["std"].std() / np.sqrt(200)


@pytest.mark.parametrize(
    ("means", "noise", "shape", "advice"),
    [
        ({"std": 1.0, "gplv": 1.0, "gplc": 1.0}, "cannot be told", "cannot be told", "std"),
        ({"std": 1.0, "gplv": 0.5, "gplc": 0.5}, "Yes, clearly", "cannot be told", "gplv"),
        ({"std": 1.0, "gplv": 0.5, "gplc": 0.2}, "Yes, clearly", "Yes, clearly", "gplc"),
        ({"std": 0.5, "gplv": 0.8, "gplc": 0.9}, "no sign of it", "no sign of it", "std"),
    ],
)
def test_answers_follow_from_the_scores(means, noise, shape, advice):
    result = made(**means)
    assert noise in result.answers[0]
    assert shape in result.answers[1]
    assert result.advice == advice
    assert result.answers[2].startswith(f"Use {advice.upper()}: ")
    assert all(answer in str(result) for answer in result.answers)


@pytest.mark.parametrize(
    ("varies", "gaussian", "noise", "shape"),
    [
        (True, True, "FOURTH predicts better than STD", "noise of its own predicts as well"),
        (True, False, "FOURTH predicts better than STD", "FOURTH predicts better than GPLV"),
        (False, True, "same noise everywhere predicts as well", "GPLC predicts better than GPLV"),
        (False, False, "same noise everywhere predicts as well", "GPLC predicts better than GPLV"),
    ],
)
def test_a_fourth_model_takes_part_by_what_it_says(monkeypatch, varies, gaussian, noise, shape):
    """Beside models that say the same about their noise, and against those that do not."""
    fourth = SimpleNamespace(
        title="FOURTH",
        noise_summary="noise of its own",
        noise_varies=varies,
        noise_is_gaussian=gaussian,
    )
    monkeypatch.setitem(MODELS, "fourth", fourth)
    told = made(std=1.0, gplv=0.8, gplc=0.5, fourth=0.2).answers
    assert noise in told[0]
    assert shape in told[1]
    assert told[-1] == "Use FOURTH: noise of its own."


def test_questions_need_models_that_differ_in_that():
    assert len(made(std=1.0, gplv=0.5).answers) == 2
    assert made(gplv=1.0, gplc=0.5).answers[0].startswith("Is it other than Gaussian")
    assert made(std=1.0, mine=0.5).answers == ["Use MINE: as you set it up."]


def test_chains_that_differ_are_mentioned():
    assert len(made(std=1.0, gplv=0.5, gplc=0.5).answers) == 3
    told = made(rhat=1.3, std=1.0, gplv=0.5, gplc=0.5).answers
    assert "chains of STD, GPLV, GPLC have not converged" in told[2]


def test_words_for_differences():
    assert Difference(0.25, 0.1).word == "probably"
    assert Difference(0.0, 0.0).word == "not"


def test_the_table_names_the_best():
    told = str(made(std=1.0, gplv=0.5, gplc=0.7)).splitlines()
    assert [line.split()[0] for line in told[3:6]] == ["std", "gplv", "gplc"]
    assert "best" in told[4]
    assert "+0.2" in told[5]


@pytest.mark.parametrize(("folds", "message"), [(1, "at least 2"), (30, "at most the 5 rows")])
def test_bad_folds(folds, message):
    with pytest.raises(ValueError, match=message):
        compare(np.arange(5.0)[:, None], np.arange(5.0), folds=folds)
