"""Does the noise depend on x, and is it Gaussian? Three models predict rows they have not seen.

The data are the paper's problem U2, whose noise is known to depend on x and to be skewed.
"""

import gplc
from gplc.comparison import every_model


def main(rows: int = 100) -> None:
    """Compare the models, then look at the skewness the best one finds."""
    data = gplc.datasets.make_paper("U2", n=rows, random_state=1)
    models = every_model(chains=2, draws=300, warmup=200, random_state=0)
    result = gplc.compare(data.X, data.y, models, folds=4, n_jobs=-1)
    print(result)

    best = models[result.best].fit(data.X, data.y)
    x = [[0.1], [0.5], [0.9]]
    print(f"\n{result.best.upper()} says, at x = 0.1, 0.5 and 0.9:")
    truth = gplc.datasets.univariate_sd([each for (each,) in x])
    print(f"  residual SD {best.residual_sd(x).mean.round(2)}, in truth {truth.round(2)}")
    print(f"  skewness of a new y {best.predict_dist(x).skewness().round(2)}")


if __name__ == "__main__":
    main()
