"""A run that survives being killed: checkpoint, resume, extend, save, and use it elsewhere."""

import tempfile
from pathlib import Path

import gplc


def main(folder: Path) -> None:
    """Run in two goes, extend, save, load."""
    data = gplc.datasets.load_lidar()
    X, y = data.X[::4], data.y[::4]
    settings = {"checkpoint": folder / "run.ckpt", "warmup": 200, "random_state": 0}

    # As if this process had died after 100 draws: the second call goes on from the file.
    gplc.StandardGP(draws=100, **settings).fit(X, y)
    model = gplc.StandardGP(draws=400, progress="auto", **settings).fit(X, y)
    print(f"{model.diagnostics_.n_draws} draws a chain; verdict: {model.diagnostics_.verdict}")

    model.extend(draws=200)
    model.save(folder / "lidar.nc")
    again = gplc.load(folder / "lidar.nc")
    print("At a range of 600:", again.predict_interval([[600.0]], coverage=0.9).round(3)[0])

    posterior = again.draws_.to_arviz()["posterior"]  # for ArviZ, or anything that reads xarray
    print(posterior["noise_sd"].mean(dim="draw").round(3).values)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
