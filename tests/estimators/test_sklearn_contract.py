"""The estimators among scikit-learn's tools."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from gplc import LatentCovariateGP, LatentVarianceGP, StandardGP

SMALL = {"chains": 1, "draws": 10, "warmup": 10, "predictive_draws": 10, "nodes": 3}


@parametrize_with_checks(
    [
        StandardGP(**SMALL),
        LatentCovariateGP(**SMALL),
        LatentVarianceGP(**SMALL),
    ]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
