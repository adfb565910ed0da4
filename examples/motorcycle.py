"""Fit GPLC to the motorcycle data, print what it predicts, and draw it.

``python examples/motorcycle.py`` writes ``out/motorcycle.png``, or the file given as an argument.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import gplc


def main(path: Path) -> None:
    """Fit, print, draw."""
    data = gplc.datasets.load_motorcycle()
    X = pd.DataFrame(data.X, columns=["Time after impact (ms)"])
    y = pd.Series(data.y, name="Head acceleration (g)")
    model = gplc.LatentCovariateGP(n_jobs=-1, random_state=0).fit(X, y)
    print(f"Verdict on the chains: {model.diagnostics_.verdict}")

    times = pd.DataFrame({X.columns[0]: [5.0, 15.0, 20.0, 30.0, 45.0]})
    print(times.join(pd.DataFrame(model.predict_dist(times).summary(0.9)._asdict())).round(1))

    figure = gplc.plots.overview(model)
    figure.axes[0].set_title("Motorcycle crash: predictive distribution of GPLC", loc="left")
    figure.axes[1].set_ylabel("Residual SD (g)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(f"The picture is in {path}.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/motorcycle.png"))
