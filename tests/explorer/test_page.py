"""The page in a real browser: the `site` fixture also checks that it logs nothing and asks no other server."""

import io
import json
import shutil

import numpy as np
import pytest
import requests
from PIL import Image

from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.explorer.runs import Catalogue
from lddr.runs.folder import PRETRAINED
from lddr.runs.run import run
from lddr.trained import Trained
from tests.explorer.conftest import PIXELS, QUIET, SMALL, serving, visiting
from tests.run_folders import completed

DRAWN = "canvas[aria-label='What the model draws']"


def column(page, name):
    """The texts of a column of the table of runs."""
    names = page.locator("table.runs th button").evaluate_all("all => all.map(one => one.dataset.column)")
    return page.locator(f"table.runs tbody td:nth-child({names.index(name) + 2})").all_inner_texts()


def drawn_again(site, act):
    """The pixels of the model's picture before and after something was done and the new picture is there."""
    canvas = site.page.locator(DRAWN)
    before, number = site.pixels(canvas), canvas.get_attribute("data-drawn")
    act()
    site.page.wait_for_function(
        "([place, old]) => document.querySelector(place).dataset.drawn !== old", arg=[DRAWN, number]
    )
    return before, site.pixels(canvas)


def move(slider, keys):
    """As somebody with a keyboard does."""
    slider.focus()
    for key in keys:
        slider.press(key)


def ends(slider):
    """The keys for both ends of a slider, the farther one first: the image, and so the place, is a random one."""
    value, low, high = (float(slider.evaluate(f"one => one.{name}")) for name in ("value", "min", "max"))
    return ("Home", "End") if value > (low + high) / 2 else ("End", "Home")


def test_open_sort_filter_and_click_a_run(site, tokens):
    page = site.page
    site.open()
    assert page.locator("table.runs tbody tr").count() == 4
    page.get_by_role("button", name="elbo").click()
    scores = [float(text) for text in column(page, "elbo") if text]
    assert scores == sorted(scores, reverse=True)
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("elbo")
    page.get_by_role("button", name="elbo").press("Enter")
    assert [float(text) for text in column(page, "elbo") if text] == sorted(scores)
    page.get_by_role("searchbox").fill("model=dvae mig>-1")
    assert page.locator("table.runs tbody tr").count() == 1
    assert "1 of 4 runs" in page.locator(".bar output").inner_text()
    page.get_by_role("searchbox").fill("unfin")
    assert column(page, "state") == ["training"]
    page.get_by_role("searchbox").fill("migg>1")
    assert "No run has a column “migg”" in page.get_by_role("alert").inner_text()
    page.get_by_role("searchbox").fill("")
    page.locator(f"tr[data-token='{tokens['dvae']}'] td").nth(3).click()
    site.ready()
    assert page.url.endswith(f"#/model/{tokens['dvae']}")
    assert page.locator("h1").inner_text() == "dvae"
    page.go_back()
    site.ready()
    assert page.locator("table.runs tbody tr").count() == 4


def test_points_show_every_family_at_first_and_open_their_run_by_keys(site, tokens):
    page = site.page
    site.open()
    drawn = page.locator(".plot .point").evaluate_all("all => all.map(one => one.dataset.token)")
    assert set(drawn) == {tokens["dvae"], tokens["vae"]}  # the others have no MIG
    assert [page.get_by_label(f"{name} axis").input_value() for name in ("Across", "Up")] == ["elbo", "mig"]
    page.get_by_label("Across axis").select_option("gap")
    assert page.locator(".plot .point").count() == 1  # the others have no gap
    assert page.locator(".plot .chosen").count() == 1
    page.get_by_label("Across axis").select_option("elbo")
    points = page.locator(".plot .point")
    points.first.focus()
    page.keyboard.press("ArrowRight")
    token = page.evaluate("document.activeElement.dataset.token")
    assert token == points.nth(1).get_attribute("data-token")
    page.keyboard.press("Enter")
    page.wait_for_function("token => location.hash.endsWith(token)", arg=token)
    site.ready()


def test_the_first_score_across_is_one_that_all_runs_have(own_site, own_root, tokens):
    """The ELBO of older runs is shown as what it is; the gap is drawn if every run has one."""
    scores = json.loads((own_root / "vae" / "scores.json").read_text())
    older = {"elbo": scores["training"]["elbo_noiseless"], "kl": scores["training"]["kl"]}
    (own_root / "vae" / "scores.json").write_text(json.dumps(scores | {"training": older}))
    own_site.open(f"metrics/{tokens['vae']}")
    facts = own_site.page.locator(".facts li").all_inner_texts()
    assert [fact for fact in facts if fact.startswith("elbo")] == [f"elbo_noiseless {older['elbo']:.3f}"]
    own_site.open()
    assert own_site.page.get_by_label("Across axis").input_value() == "elbo_noiseless"
    shutil.rmtree(own_root / "vae")
    own_site.open()
    assert own_site.page.get_by_label("Across axis").input_value() == "gap"


def test_shipped_models_are_a_gallery(shared_site):
    with serving(PRETRAINED / "circles-dvae") as address:
        shared_site.leave(address)
        shared_site.open()
        card = shared_site.page.locator(".model-card")
        card.locator(".traversal").nth(2).wait_for()
        assert card.locator("h2").inner_text() == "circles-dvae"
        assert "dvae on circles" in card.inner_text()
        labels = card.locator(".traversal span").all_inner_texts()
        assert [label.split()[0] for label in labels] == ["input,", "x", "y"]
        assert [row.locator("canvas").count() for row in card.locator(".traversal").all()] == [2, 8, 8]
        assert shared_site.page.locator(".scatter").count() == 0
        assert shared_site.page.locator("table.runs tbody tr").count() == 1
        card.get_by_role("link", name="Open").click()
        shared_site.page.wait_for_selector(".view.model[data-ready]")
        shared_site.check()
        shared_site.leave(None)


def test_a_gallery_shows_samples_and_models_without_any(shared_site, tmp_path, monkeypatch):
    for name in ("with", "without"):
        shutil.copytree(PRETRAINED / "clothes-dvae", tmp_path / name)
    (tmp_path / "without" / "samples.png").unlink()
    monkeypatch.setattr("lddr.explorer.runs.is_shipped", lambda folder: True)
    with serving(tmp_path) as address:
        shared_site.leave(address)
        shared_site.open()
        cards = shared_site.page.locator(".model-card")
        cards.nth(1).locator(".traversal").nth(5).wait_for()
        counts = [[row.locator("canvas").count() for row in card.locator(".traversal").all()] for card in cards.all()]
        assert counts == [[2, *[8] * 6], [8] * 6]
        assert "was shared without the images" in cards.nth(1).inner_text()
        assert shared_site.page.locator(".problem").count() == 0
        cards.first.get_by_role("link", name="Open").click()
        shared_site.page.wait_for_selector(".view.model[data-ready]")
        assert "The images are samples that were shared with the model." in shared_site.page.inner_text("body")
        shared_site.check()
        shared_site.leave(None)


@pytest.mark.parametrize(("name", "count"), [("dvae", 12), ("vae", 10)])
def test_sliders_and_traversals_change_the_picture(site, tokens, name, count):
    page = site.page
    site.open(f"model/{tokens[name]}")
    rows = page.locator(".latent")
    slider = rows.first.locator("input")
    first, second = ends(slider)
    before, after = drawn_again(site, lambda: move(slider, [first]))
    other, end = drawn_again(site, lambda: move(slider, [second]))
    assert after != end
    assert other == after
    assert "1 latent moved" in page.locator("figcaption").nth(1).inner_text()
    _, reset = drawn_again(site, lambda: page.get_by_role("button", name="Reset", exact=True).click())
    assert reset == before
    rows.first.get_by_role("button", name="Traverse").click()
    cells = rows.first.locator(".strip button")
    cells.nth(count - 1).wait_for()
    assert cells.count() == count
    pictures = [site.pixels(cells.nth(place).locator("canvas")) for place in (0, count - 1)]
    assert pictures[0] != pictures[1]
    _, chosen = drawn_again(site, lambda: cells.nth(0).click())
    assert chosen == pictures[0]
    assert cells.nth(0).get_attribute("aria-pressed") == "true"
    another = rows.nth(1).locator("input")
    drawn_again(site, lambda: move(another, ends(another)[:1]))
    page.wait_for_function(  # an open strip follows the other latents
        f"old => String(({PIXELS})(document.querySelector('.strip canvas'))) !== old",
        arg=",".join(map(str, pictures[0])),
    )
    rows.first.get_by_role("button", name="Traverse").click()
    assert not rows.first.locator(".strip").is_visible()


def test_a_masked_latent_has_its_active_categories_only(site, tokens):
    site.open(f"model/{tokens['masked']}")
    for latent, last in {0: 39, 1: 39, 2: 63}.items():
        assert site.page.locator(f"[data-latent='{latent}'] input").get_attribute("max") == str(last)
    slider = site.page.locator("[data-latent='0'] input")
    drawn_again(site, lambda: move(slider, ["Home", "ArrowRight"]))
    assert site.page.locator("[data-latent='0'] output").inner_text() == "category 2 of 64"  # 1.6, rounded
    row = site.page.locator("[data-latent='2']")  # 64 categories, all of which are seen
    row.get_by_role("button", name="Traverse").click()
    row.locator(".strip button").nth(63).wait_for()
    strip, last = (row.locator(place).last.bounding_box() for place in (".strip", ".strip button"))
    assert last["y"] + last["height"] <= strip["y"] + strip["height"]


def test_images_by_number_by_factors_and_at_random(site, tokens):
    page, images = site.page, load_dataset("circles", 16)
    site.open(f"model/{tokens['dvae']}")
    number = page.get_by_label("Number of the image")
    original = page.get_by_label("The image", exact=True)

    def shows(index):
        expected = np.repeat(images.images([index])[0], 4, axis=2)
        expected[..., 3] = 255
        page.wait_for_function(
            f"wanted => String(({PIXELS})(document.querySelector('canvas'))) === wanted",
            arg=",".join(map(str, expected.ravel().tolist())),
        )

    number.fill("777")
    number.press("Enter")
    shows(777)
    assert page.get_by_label("x", exact=True).input_value() == "19"
    page.get_by_role("button", name="Next image").click()
    shows(778)
    page.get_by_role("button", name="Previous image").click()
    shows(777)
    move(page.get_by_label("y", exact=True), ["Home"])
    shows(760)
    assert number.input_value() == "760"
    assert page.locator(".factor output").nth(1).inner_text() == "0.2"
    drawn_again(site, lambda: page.get_by_role("button", name="Random image").click())
    assert original.is_visible()


def as_file(content, name="picture.png", kind="image/png"):
    return {"name": name, "mimeType": kind, "buffer": content}


def test_upload_a_picture_and_then_rubbish(site, tokens, tmp_path):
    page = site.page
    site.open(f"model/{tokens['dvae']}")
    buffer = io.BytesIO()
    Image.fromarray(np.full((50, 70, 3), 200, np.uint8)).save(buffer, "PNG")
    upload = page.locator("input[type=file]")
    drawn_again(site, lambda: upload.set_input_files(as_file(buffer.getvalue())))
    seen = site.pixels(page.get_by_label("The image", exact=True))
    assert set(seen[:3]) == {200}
    before = site.pixels(page.locator(DRAWN))
    upload.set_input_files(as_file(b"<script>alert(1)</script>"))
    assert "not a readable picture" in page.get_by_role("alert").inner_text()
    upload.set_input_files(as_file(b"text", "notes.txt", "text/plain"))
    (tmp_path / "large.png").write_bytes(bytes(5_000_001))
    upload.set_input_files(tmp_path / "large.png")
    page.get_by_text("too large").wait_for()
    assert site.pixels(page.locator(DRAWN)) == before
    drawn_again(site, lambda: page.get_by_role("button", name="Random image").click())
    assert page.get_by_role("alert").count() == 0


def test_round_random_and_downloads(site, tokens, root):
    page = site.page
    site.open(f"model/{tokens['dvae']}")
    outputs = page.locator(".latent output")
    assert all(text.startswith("mean") for text in outputs.all_inner_texts())
    drawn_again(site, lambda: page.get_by_role("button", name="Round").click())
    assert all(text.startswith("category") for text in outputs.all_inner_texts())
    drawn_again(site, lambda: page.get_by_role("button", name="Random", exact=True).click())
    with page.expect_download() as download:
        page.get_by_role("button", name="Save settings").click()
    settings = json.loads(download.value.path().read_text())
    assert settings["run"] == "dvae"
    assert [latent["category"] in range(12) for latent in settings["latents"]] == [True, True]
    with page.expect_download() as download:
        page.get_by_role("button", name="Save picture").click()
    picture = np.asarray(Image.open(download.value.path()).convert("RGBA"))
    assert picture.ravel().tolist() == site.pixels(page.locator(DRAWN))
    expected = Trained.load(root / "dvae").decode(np.array([settings["values"]], float))[0, :, :, 0]
    assert np.abs(picture[..., 0] - 255 * expected).max() <= 0.51


def test_compare_two_models_on_the_same_image(site, tokens):
    page = site.page
    site.open()
    for name in ("dvae", "vae"):
        page.get_by_label(f"Compare {name}", exact=True).check()
    page.get_by_role("link", name="Compare").last.click()
    page.wait_for_selector(".view.compare[data-ready]")
    sides = page.locator(".side")
    images = [site.pixels(sides.nth(place).get_by_label("The image", exact=True)) for place in (0, 1)]
    assert images[0] == images[1]
    results = [site.pixels(sides.nth(place).get_by_label("Reconstruction")) for place in (0, 1)]
    assert results[0] != results[1]
    assert [sides.nth(place).locator(".strip canvas").count() for place in (0, 1)] == [10, 10]
    assert [sides.nth(place).locator(".plane .line").count() for place in (0, 1)] == [28, 28]
    picture = sides.nth(0).locator(".plane canvas")
    before = site.pixels(picture)
    sides.nth(0).locator(".plane .chart").click(position={"x": 60, "y": 20})
    page.wait_for_function(
        f"old => String(({PIXELS})(document.querySelector('.plane canvas'))) !== old",
        arg=",".join(map(str, before)),
    )
    page.get_by_label("Second run").select_option(tokens["masked"])
    page.wait_for_function("token => location.hash.endsWith(token)", arg=tokens["masked"])
    site.ready()
    assert sides.nth(1).locator(".plane").count() == 0  # three latents


def test_compare_opens_one_of_each_family(site, tokens):
    of = {token: name for name, token in tokens.items()}
    for given in (None, "vae"):
        site.open(f"compare/{tokens[given]}" if given else "compare")
        names = [of[site.page.get_by_label(f"{name} run").input_value()] for name in ("First", "Second")]
        assert "vae" in names
        assert names[0] == (given or names[0]) != names[1]


def test_images_without_factors_or_with_some_missing(own_site, own_root, tmp_path):
    tokens = []
    for name, table in (("plain", None), ("labelled", "file,shape,x\n0.png,box,1\n2.png,,2\n1.png,ball,\n")):
        pictures = tmp_path / name
        pictures.mkdir()
        for number in range(3):
            Image.fromarray(np.full((16, 16), 60 * number, np.uint8)).save(pictures / f"{number}.png")
        if table:
            (pictures / "factors.csv").write_text(table)
        folder = run(configure("dvae", str(pictures), **SMALL | {"steps": 1}), own_root, QUIET)
        tokens.append(next(token for token, one in Catalogue(own_root).listed().items() if one.name == folder.name))
    own_site.open(f"metrics/{tokens[0]}")
    text = own_site.page.locator("main").inner_text()
    assert "its images have no factors" in text
    assert "lddr evaluate" not in text
    own_site.open(f"model/{tokens[1]}")
    values = own_site.page.locator(".factor output")
    number = own_site.page.get_by_label("Number of the image")
    for image, shown in ((0, ["box", "1"]), (2, ["unknown", "2"]), (1, ["ball", "unknown"])):
        number.fill(str(image))
        number.press("Enter")
        for place, text in enumerate(shown):
            values.nth(place).get_by_text(text, exact=True).wait_for()
        assert values.all_inner_texts() == shown


def test_metrics_show_scores_information_and_pictures(site, tokens):
    page = site.page
    site.open(f"metrics/{tokens['dvae']}")
    assert page.locator(".heat thead th").all_inner_texts() == ["x", "y"]
    assert page.locator(".heat tbody tr").count() == 2
    assert page.locator(".figures .curve").count() >= 4
    assert page.locator(".pair").count() == 10
    assert "mig" in page.locator(".scores").inner_text()


def test_curves_grow_while_a_run_trains_and_its_end_is_seen(own_site, tokens, own_root):
    page = own_site.page
    own_site.open(f"metrics/{tokens['unfinished']}")
    assert "step 20 of 40" in page.locator(".curves").inner_text()
    (own_root / "unfinished/log.jsonl").write_text('{"step": 20, "loss": 9.5}\n{"step": 30, "loss": 9.0}\n')
    page.get_by_text("step 30 of 40").wait_for()
    for name in ("model.safetensors", "scores.json"):
        shutil.copy(own_root / "vae" / name, own_root / "unfinished" / name)
    page.locator(".pair").first.wait_for()
    assert page.locator("progress").count() == 0


def test_a_run_that_trains_says_so(site, tokens):
    site.open(f"model/{tokens['unfinished']}")
    assert "no model yet" in site.page.get_by_role("alert").inner_text()


def test_a_run_that_is_deleted_or_damaged_gives_a_message(own_site, tokens, own_root):
    page = own_site.page
    own_site.open(f"model/{tokens['dvae']}")
    shutil.rmtree(own_root / "dvae")
    slider = page.locator(".latent input[type=range]").first
    move(slider, ends(slider))
    page.get_by_text("This run is no longer there", exact=False).wait_for()
    assert page.locator(".latent").count() == 2
    (own_root / "vae/model.safetensors").write_bytes(b"nonsense")
    own_site.open(f"model/{tokens['vae']}")
    assert "annot use the model" in page.get_by_role("alert").inner_text()
    own_site.open(f"compare/{tokens['masked']}/{tokens['vae']}")
    assert "annot use the model" in page.get_by_role("alert").inner_text()
    assert page.locator(".side").first.locator(".strip canvas").count() == 10
    (own_root / "masked/config.json").write_text("{")
    own_site.open(f"metrics/{tokens['masked']}")
    assert "This run is broken" in page.get_by_role("alert").first.inner_text()
    own_site.open()
    assert "broken" in column(page, "state")


def test_an_address_cannot_lead_outside(site):
    for place in ("model/..%2f..%2fsecret.txt", "metrics/%2e%2e"):
        site.open(place)
        message = site.page.get_by_role("alert").inner_text()
        assert "no longer there" in message or "nothing here" in message
        assert "secret" not in site.page.locator("main").inner_text()


def test_names_are_text_and_never_markup(own_site, own_root):
    evil = own_root / "<img src=x onerror=alert(1)>"
    shutil.copytree(own_root / "vae", evil)
    own_site.open()
    own_site.page.get_by_role("searchbox").fill("onerror")
    own_site.page.locator("table.runs tbody tr td").nth(2).click()
    own_site.page.wait_for_selector(".view.model[data-ready]")
    assert own_site.page.locator("h1").inner_text() == evil.name


@pytest.mark.long
def test_a_thousand_runs_are_listed_and_drawn(chromium, tmp_path, many_values):
    for seed in range(1000):
        (tmp_path / f"run-{seed}").mkdir()
        for name, content in zip(("config.json", "scores.json"), many_values(seed), strict=True):
            (tmp_path / f"run-{seed}" / name).write_text(content)
        completed(tmp_path / f"run-{seed}")
    with serving(tmp_path) as address, visiting(chromium, address) as site:
        site.open()
        page = site.page
        assert page.locator(".plot .point").count() == 1000
        assert page.locator("table.runs tbody tr").count() == 200
        page.get_by_role("button", name="mig").click()
        assert column(page, "mig")[:2] == ["0.999", "0.998"]
        page.get_by_role("button", name="Show all 1000 runs").click()
        assert page.locator("table.runs tbody tr").count() == 1000


LONG = "a-name-of-a-hundred-letters-" * 4


@pytest.fixture(scope="session")
def long_names(root, tmp_path_factory):
    """Runs whose names, factors, scores and reasons are as long as those of real ones can be."""
    place = tmp_path_factory.mktemp("long")
    for name in ("dvae", "vae"):
        folder = shutil.copytree(root / name, place / f"{LONG}{name}")
        config = json.loads((folder / "config.json").read_text())
        config["dataset"]["factors"] = {"horizontal_position_of_the_circle": 40, "verticalpositionofthecircle": 40}
        (folder / "config.json").write_text(json.dumps(config))
        scores = json.loads((folder / "scores.json").read_text())
        details = {"efficiency_of_one_hundred_training_samples": 0.2, "score": 0.5, "settings": {}}
        reason = {"score": None, "reason": "thisreasonisonelongwordwhichnothingcanbreakatanyplace", "settings": {}}
        scores["metrics"] |= {"downstream_boosting": details, "sap": reason}
        (folder / "scores.json").write_text(json.dumps(scores))
    return place


@pytest.mark.parametrize(
    "phone",
    [pytest.param(True, id="phone"), pytest.param(False, id="narrow window", marks=pytest.mark.long)],
)
def test_nothing_is_wider_than_a_phone(chromium, long_names, phone):
    size = {"width": 390, "height": 844}
    over = "[...document.querySelectorAll('main *')].filter(one => !one.closest('.scroller, .choices'))"
    over += ".filter(one => one.getBoundingClientRect().right > 390).map(one => one.outerHTML.slice(0, 80))"
    with serving(long_names) as address, visiting(chromium, address, color_scheme="dark", is_mobile=phone) as site:
        site.page.set_viewport_size(size)
        token = requests.get(f"{address}/api/runs", timeout=60).json()["runs"][0]["token"]
        for view in ("runs", f"model/{token}", f"compare/{token}", f"metrics/{token}"):
            site.open(view)
            site.page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
            assert site.page.evaluate("document.documentElement.scrollWidth") <= 390, view
            assert site.page.evaluate(over) == [], view
        assert site.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 23, 26)"


@pytest.mark.long
def test_two_people_do_not_disturb_each_other(chromium, address, tokens):
    with visiting(chromium, address) as one, visiting(chromium, address) as other:
        for site in (one, other):
            site.open(f"model/{tokens['dvae']}")
        before = other.pixels(other.page.locator(DRAWN))
        slider = one.page.locator(".latent input[type=range]").first
        drawn_again(one, lambda: move(slider, ends(slider)[:1]))
        _, after = drawn_again(other, lambda: other.page.get_by_role("button", name="Reset", exact=True).click())
        assert after == before
