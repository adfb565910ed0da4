"""Comparison of models: scores of rows left out, paired errors, and the words for them."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

import gplc
from gplc.comparison import Comparison, Difference, compare, every_model
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
