import re
from io import BytesIO

import pytest
from PIL import Image
from playwright.sync_api import expect

from lddr.report.exhibits import Number, Table, comma_separated
from lddr.report.html import (
    Picture,
    Section,
    code_card,
    facts_card,
    gallery,
    page,
    side_by_side,
    table_card,
    table_cards,
)

ROWS = (
    ("VAE", Number(9.5, 5.0, 12.0, 3, "†"), Number(11.3), "b"),
    ("D-VAE", Number(41.26, 30.0, 50.0, 5, best=True), None, "a"),
    ("FactorDVAE", Number(-3.0), Number(21.7), ""),
    ("<script>alert(1)</script>", Number(10.0), None, "C & D"),
)
TABLE = Table("mig", "MIG in %", ("Model", "dsprites", "paper: dSprites", "words"), ROWS, ("† of 300,000 steps",))
WIDE = Table("wide", "Wide", ("Setting", *(f"column {place}" for place in range(30))), (("row", *["value"] * 30),))


def picture(name, width, height, kind="PNG"):
    content = BytesIO()
    Image.new("RGB", (width, height), "orange").save(content, kind)
    return Picture(name, f"Title of {name}", f'Caption of "{name}"', content.getvalue())


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    pictures = [picture("wide", 1800, 600), picture("small", 600, 600), picture("moving", 96, 96, "GIF")]
    sections = [
        Section("Mig", table_cards([TABLE]) + table_card(WIDE, downloads=False)),
        Section("Figures", gallery(pictures)),
        Section("Nothing", ""),
        Section("Rows", side_by_side([picture("left", 1800, 600), picture("right", 1800, 600)])),
        Section("Do it again", facts_card("Facts", {"a name " * 30: "x" * 400}) + code_card("Code", ["lddr " * 100])),
    ]
    written = tmp_path_factory.mktemp("page") / "index.html"
    written.write_text(page("A report <of> runs", "lead", sections, "foot"), encoding="utf-8")
    return written


def column(visited, place):
    return [row.locator("th, td").nth(place).inner_text() for row in visited.page.locator("#table-mig tbody tr").all()]


def test_it_says_nothing_and_asks_for_nothing(visit, path):
    visited = visit(path)
    assert visited.said == []
    assert visited.left == []
    assert [url for url in visited.asked if url.startswith("file:")] == [path.as_uri()]


def test_every_picture_loads(visit, path):
    widths = visit(path).page.locator("img").evaluate_all("images => images.map(image => image.naturalWidth)")
    assert widths == [1800, 600, 96, 1800, 1800]


@pytest.mark.parametrize(
    ("width", "phone", "scheme"),
    [(1400, False, "light"), (800, False, "dark"), (390, True, "dark"), (320, True, "light")],
)
def test_it_fits(visit, path, width, phone, scheme):
    visited = visit(path, width=width, phone=phone, scheme=scheme)
    assert visited.page.evaluate("document.documentElement.scrollWidth") <= width
    assert visited.page.evaluate("window.innerWidth") == width  # a phone zooms out when something sticks out
    too_wide = "images => images.filter(image => image.getBoundingClientRect().right > innerWidth).length"
    assert visited.page.locator("img").evaluate_all(too_wide) == 0


def luminance(colour):
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(visit, path, scheme):
    """A contrast of 4.5, as the WCAG's level AA asks for, of every text against what is behind it."""
    script = """elements => elements.map(element => {
        let behind = element;
        while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
        return [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
    })"""
    texts = visit(path, scheme=scheme).page.locator("h1, h3, p, a, th, td, li, dt, dd, figcaption, code, td span")
    for colours in texts.evaluate_all(script):
        dark, light = sorted(map(luminance, colours))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, colours


def test_dark_is_dark_and_light_is_light(visit, path):
    script = "getComputedStyle(document.body).backgroundColor"
    dark, light = (luminance(visit(path, scheme=scheme).page.evaluate(script)) for scheme in ("dark", "light"))
    assert dark < 0.05 < 0.8 < light


def test_a_click_sorts_numbers_by_their_value_and_a_second_turns_the_order(visit, path):
    visited = visit(path)
    assert column(visited, 0)[0] == "VAE"
    heading = visited.page.locator("#table-mig thead button").nth(1)
    heading.click()
    assert column(visited, 1) == ["41.3 [30.0, 50.0] (5)", "10.0", "9.5 [5.0, 12.0] (3)†△", "-3.0"]
    assert visited.page.locator("#table-mig thead th").nth(1).get_attribute("aria-sort") == "descending"
    heading.click()
    assert column(visited, 0) == ["FactorDVAE", "VAE", "<script>alert(1)</script>", "D-VAE"]
    assert visited.page.locator("#table-mig thead th").nth(1).get_attribute("aria-sort") == "ascending"
    assert visited.said == []


def test_empty_cells_stay_last_in_both_orders(visit, path):
    visited = visit(path)
    heading = visited.page.locator("#table-mig thead button").nth(2)
    heading.click()
    assert column(visited, 2) == ["21.7", "11.3", "–", "–"]
    heading.click()
    assert column(visited, 2) == ["11.3", "21.7", "–", "–"]


def test_the_keyboard_sorts_too(visit, path):
    visited = visit(path)
    visited.page.locator("#table-mig thead button").nth(2).focus()
    visited.page.keyboard.press("Tab")
    visited.page.keyboard.press("Enter")
    assert column(visited, 3) == ["a", "b", "C & D", "–"]
    visited.page.keyboard.press("Space")
    assert column(visited, 3) == ["C & D", "b", "a", "–"]
    sorts = visited.page.locator("#table-mig thead th").evaluate_all(
        "all => all.map(one => one.getAttribute('aria-sort'))"
    )
    assert sorts == ["none", "none", "none", "descending"]


def test_a_picture_can_be_enlarged_on_a_phone(visit, path):
    visited = visit(path, width=390, phone=True)
    image = visited.page.locator("#figure-wide img")
    before = image.bounding_box()["width"]
    visited.page.locator("#figure-wide button").click()
    assert image.bounding_box()["width"] == pytest.approx(1800 * 96 / 150, abs=1)
    assert visited.page.evaluate("document.documentElement.scrollWidth") == 390
    visited.page.locator("#figure-wide button").click()
    assert image.bounding_box()["width"] == before < 390


def test_pictures_of_a_row_are_beside_each_other(visit, path):
    for width, in_a_row in ((1400, True), (390, False)):
        visited = visit(path, width=width)
        left, right = (visited.page.locator(f"#figure-{name}").bounding_box() for name in ("left", "right"))
        assert (left["y"] == right["y"]) == in_a_row
        assert (left["x"] < right["x"]) == in_a_row


def test_the_other_formats_are_in_the_page(visit, path, tmp_path):
    visited = visit(path)
    with visited.page.expect_download() as download:
        visited.page.get_by_text("CSV").click()
    assert download.value.suggested_filename == "mig.csv"
    download.value.save_as(tmp_path / "mig.csv")
    assert (tmp_path / "mig.csv").read_text() == comma_separated(TABLE)


def test_the_menu_leads_to_the_sections_that_have_something_in_them(visit, path):
    visited = visit(path)
    assert visited.page.locator("nav a").all_inner_texts() == ["Mig", "Figures", "Rows", "Do it again"]
    visited.page.get_by_role("link", name="Do it again").click()
    expect(visited.page.locator("#do-it-again")).to_be_in_viewport()


def test_what_people_write_is_text(visit, path):
    visited = visit(path)
    assert visited.page.title() == "A report <of> runs"
    assert "<script>alert(1)</script>" in column(visited, 0)
    assert visited.page.locator("script").count() == 1


def test_every_name_is_given_once(path):
    names = re.findall(r' id="([^"]*)"', path.read_text(encoding="utf-8"))
    assert len(names) == len(set(names)) > 5


def test_size_and_kind_are_read_from_the_file():
    assert (picture("a", 150, 300).size, picture("a", 30, 20).kind) == ((96, 192), "png")  # drawn finer than a screen
    assert (picture("a", 30, 20, "GIF").size, picture("a", 30, 20, "GIF").kind) == ((30, 20), "gif")
