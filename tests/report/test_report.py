"""The report: whole, self-contained, and alive in a real browser."""

import html.parser
import json
import re

import numpy as np
import pandas as pd
import pytest

import gplc
from gplc.diagnostics import LEAST_ESS, MOST_RHAT
from gplc.report import render_report, write_report

SMALL = {"chains": 2, "draws": 20, "warmup": 15, "random_state": 0}
# What was escaped twice has the code of an ampersand before another code.
TWICE = re.compile(r"&amp;#?\w+;")
NASTY = '</script><img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def single():
    """GPLC with one input."""
    data = gplc.datasets.make_paper("U1", n=20, random_state=0)
    return gplc.LatentCovariateGP(**SMALL).fit(
        pd.DataFrame(data.X, columns=["time"]), pd.Series(data.y, name="height")
    )


@pytest.fixture(scope="module")
def several():
    """GPLV with two inputs, one of which has a hostile name."""
    data = gplc.datasets.make_paper("M1", n=20, random_state=0)
    X = pd.DataFrame(data.X[:, :2], columns=["a", NASTY])
    return gplc.LatentVarianceGP(**SMALL).fit(X, data.y)


@pytest.fixture(scope="module")
def pages(single, several, tmp_path_factory):
    """Both reports as files."""
    folder = tmp_path_factory.mktemp("report")
    found = {"single": folder / "single.html", "several": folder / "several.html"}
    write_report(single, found["single"])
    write_report(several, found["several"])
    return found


class Checker(html.parser.HTMLParser):
    """Collects what a page refers to, and whether its elements are closed."""

    VOID = ("meta", "link", "img", "input")

    def __init__(self):
        super().__init__()
        self.open, self.references, self.ids, self.links, self.alts = [], [], [], [], []
        self.attributes, self.text = set(), ""

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.attributes |= given.keys()
        if tag not in self.VOID:
            self.open.append(tag)
        self.references += [given[name] for name in ("src", "href") if name in given]
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"][1:]] if given.get("href", "").startswith("#") else []
        self.alts += [given.get("alt")] if tag == "img" else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("name", ["single", "several"])
def test_the_page_is_whole_and_asks_for_nothing(pages, name):
    page = pages[name].read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert len(set(checker.ids)) == len(checker.ids)
    assert set(checker.links) <= set(checker.ids)
    assert all(checker.alts)
    assert all(each.startswith(("data:", "#")) for each in checker.references)
    assert not re.search(r"https?://|@import|url\(", page)
    assert "{{" not in page
    assert "{%" not in page


def test_the_page_has_every_section(pages):
    for name, expected in (
        (
            "single",
            "verdict data prediction noise shape calibration checks latent chains settings",
        ),
        (
            "several",
            "verdict data prediction noise shape calibration checks relevance latent chains "
            "settings",
        ),
    ):
        page = pages[name].read_text(encoding="utf-8")
        assert re.findall(r'<section id="(\w+)">', page) == expected.split()


def test_names_cannot_break_out(pages):
    page = pages["several"].read_text(encoding="utf-8")
    assert NASTY not in page
    checker = Checker()
    checker.feed(page)
    assert "onerror" not in checker.attributes


def test_names_are_escaped_once():
    """As text, in attributes and in the numbers of the slider, for inputs and response alike."""
    first, second, target = '<b>"x" & y</b>', "it's <i>", "t & <u>"
    X = pd.DataFrame({first: [0.0, 1.0, 2.0, 3.0], second: [0.0, 2.0, 1.0, 5.0]})
    model = gplc.StandardGP(**SMALL).fit(X, pd.Series([0.0, 1.0, 0.5, 2.0], name=target))
    page = render_report(model)
    assert not TWICE.search(page)
    assert "&lt;b&gt;&#34;x&#34; &amp; y&lt;/b&gt;" in page
    checker = Checker()
    checker.feed(page)
    assert f"{target} given {first}, {second}" in checker.text
    assert f"The same along {second}." in checker.text
    assert f"Densities of a new response at six values of {first}" in checker.alts
    (text,) = re.findall(r'id="densities">(.*?)</script>', page)
    assert [record["name"] for record in json.loads(text)] == [first, second]


def test_escaping_twice_is_noticed():
    """The broken twin."""
    assert TWICE.search(html.escape(html.escape(NASTY)))
    assert not TWICE.search(html.escape(NASTY))


def test_limits_are_those_of_the_diagnostics(pages):
    page = " ".join(pages["single"].read_text(encoding="utf-8").split())
    assert f"(wanted: below {MOST_RHAT})" in page
    assert f"(wanted: above {LEAST_ESS:.0f})" in page


def test_the_verdict_and_how_to_repeat_the_fit(single, pages):
    page = pages["single"].read_text(encoding="utf-8")
    assert "Do not use.</strong>" in page
    assert "<code>model.extend(" in page
    assert "gplc.LatentCovariateGP(chains=2, draws=20, random_state=0, warmup=15)" in page
    assert f"<td>{gplc.__version__}</td>" in page
    assert "height given time" in page


def test_the_slider_has_the_models_densities(single, pages):
    page = pages["single"].read_text(encoding="utf-8")
    (text,) = re.findall(r'id="densities">(.*?)</script>', page)
    (record,) = json.loads(text)
    place = record["places"][7]
    dist = single.predict_dist(pd.DataFrame({"time": [place["at"]]}))
    curve = dist.smooth_pdf([place["y"]])[0]
    np.testing.assert_allclose(place["density"], curve, rtol=0.02, atol=1e-3)
    assert place["mean"] == pytest.approx(dist.mean()[0], rel=1e-3)
    area = np.trapezoid(place["density"], place["y"])
    assert area == pytest.approx(1.0, abs=0.01)


def test_the_page_is_the_same_each_time():
    model = gplc.StandardGP(**SMALL).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5])
    pictures = re.compile(r"base64,[^\"]*")  # matplotlib numbers its clip paths at random
    first, second = (pictures.sub("", render_report(model)) for _ in range(2))
    assert first == second


# --- in a browser ---------------------------------------------------------------------------


def test_the_slider_changes_the_curve(browser, pages):
    browser.size(1200, 900)
    browser.open(pages["single"])
    curve = "document.getElementById('density-curve').getAttribute('d')"
    words = "document.getElementById('shape-words').textContent"
    before, said = browser.run(curve), browser.run(words)
    assert before.startswith("M")
    assert "At time = " in said
    browser.run("document.getElementById('place').focus()")
    for _ in range(5):
        browser.press("ArrowRight", 39)
    assert browser.run("document.getElementById('place').value") == "25"
    assert browser.run(curve) != before
    assert browser.run(words) != said
    assert browser.complaints() == []


def test_the_input_can_be_chosen(browser, pages):
    browser.size(1200, 900)
    browser.open(pages["several"])
    words = "document.getElementById('shape-words').textContent"
    assert "At a = " in browser.run(words)
    browser.run(
        "const choice = document.getElementById('input-choice'); choice.selectedIndex = 1;"
        "choice.dispatchEvent(new Event('change'))"
    )
    assert f"At {NASTY} = " in browser.run(words)
    assert browser.complaints() == []


@pytest.mark.parametrize("name", ["single", "several"])
@pytest.mark.parametrize(("width", "mobile"), [(1200, False), (360, True)])
def test_it_fits_wide_and_narrow_screens_and_stays_at_home(browser, pages, name, width, mobile):
    browser.size(width, 800, mobile)
    browser.open(pages[name])
    assert browser.run("document.documentElement.scrollWidth") <= width
    broken = "[...document.images].filter((image) => !image.naturalWidth).length"
    assert browser.run(broken) == 0
    assert browser.requests() == [pages[name].resolve().as_uri()]
    assert browser.complaints() == []


def test_complaints_and_requests_are_noticed(browser, tmp_path):
    """The broken twin: a page that does all that a report must not do."""
    page = tmp_path / "bad.html"
    page.write_text(
        '<link rel="icon" href="data:,"><img src="http://127.0.0.1:9/x.png">'
        '<script>console.error("oh"); undefinedFunction();</script>'
    )
    browser.open(page)
    assert len(browser.requests()) == 2
    assert len(browser.complaints()) >= 2


def test_it_prints(browser, pages):
    browser.open(pages["single"])
    answer = browser.call("Page.printToPDF", preferCSSPageSize=True)
    assert answer["data"].startswith("JVBERi")  # %PDF


# --- what a stranger asks of it -----------------------------------------------------------------


def test_it_says_where_the_fit_comes_from(single):
    single.origin_ = {
        "date": "2030-01-02 03:04 +0000",
        "file": "crash.csv",
        "fit": "crash.fit.nc",
        "command": "gplc fit crash.csv -y height --drop-missing",
        "left out": "2 of 22 rows with missing values",
    }
    checker = Checker()
    checker.feed(render_report(single))
    told = " ".join(checker.text.split())
    assert "rows of crash.csv, fitted on 2030-01-02 03:04 +0000." in told
    assert "Left out: 2 of 22 rows with missing values." in told
    assert "gplc fit crash.csv -y height --drop-missing" in told
    assert "Next: gplc resume crash.fit.nc" in told
    assert "model.extend" not in told


def test_it_has_priors_and_posteriors_in_units_of_the_columns(single, pages):
    page = pages["single"].read_text(encoding="utf-8")
    # The prior of a length scale is lognormal around one SD of the input, within e^1.64 for 90%.
    sd = float(single.x_scaling_.scale[0])
    assert f"<td>length_scale</td><td>{sd:.3g} ({sd / np.exp(1.6449):.2g} to" in page
    assert re.search(r"<td>noise_sd</td><td>[^<]*</td><td>[^<]*</td><td>height</td>", page)


def test_a_slice_without_data_near_is_told_and_rows_near_it_are_drawn():
    line = np.linspace(0.0, 1.0, 24)
    X = pd.DataFrame({"a": line, "b": line + 0.01 * np.sin(40 * line)})
    model = gplc.StandardGP(**SMALL).fit(X, line)
    (text,) = re.findall(r'id="densities">(.*?)</script>', render_report(model))
    places = json.loads(text)[0]["places"]
    assert not places[0]["near"]
    assert not places[-1]["near"]
    assert any(place["near"] for place in places)
    ax = gplc.plots.fan(model, "a")
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "nearest rows (10)" in labels
    assert "no data near" in labels
    veiled = [patch.get_x() for patch in ax.patches]
    assert min(veiled) == pytest.approx(0.0)
