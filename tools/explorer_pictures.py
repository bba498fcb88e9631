"""Take the pictures of docs/explorer.md again, of the models that ship with lddr: python tools/explorer_pictures.py

It needs Chromium, as the tests do. The pictures of a list of runs and of two models compared need runs of your own.
"""

import threading
from io import BytesIO
from pathlib import Path

import requests
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from lddr.explorer.guard import listening, url
from lddr.explorer.server import create_app, server
from lddr.files import written_whole
from lddr.runs.folder import PRETRAINED

IMAGES = Path(__file__).parents[1] / "docs" / "images"
CHROMIUM, MODEL = "/usr/bin/chromium", "rooms-dvae"
GALLERY_DRAWN = "() => !document.querySelector('.model-card .rows > p.quiet')"


def take(address: str, token: str, open_page: dict[str, Page]) -> None:
    """Write each picture: the view, and what to wait for."""
    wide, dark, phone = open_page["wide"], open_page["dark"], open_page["phone"]
    wide.goto(address)
    wide.wait_for_selector(".model-card")
    wide.wait_for_function(GALLERY_DRAWN, timeout=300_000)
    _write("explorer-gallery", wide.screenshot(full_page=True))
    for page, view, name in (
        (wide, "model", "explorer-model"),
        (wide, "metrics", "explorer-metrics"),
        (dark, "model", "explorer-dark"),
        (phone, "model", "explorer-phone"),
    ):
        page.goto("about:blank")
        page.goto(f"{address}/#/{view}/{token}")
        page.wait_for_selector(".view[data-ready]", timeout=300_000)
        if view == "model":
            page.locator(".latent").first.get_by_role("button", name="Traverse").click()
            page.locator(".strip canvas").nth(1).wait_for()
        _write(name, page.screenshot())


def _write(name: str, content: bytes) -> None:
    """Write a picture with 256 colours, a third of its size."""
    with written_whole(IMAGES / f"{name}.png") as draft, Image.open(BytesIO(content)) as picture:
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(draft, "PNG", optimize=True)


if __name__ == "__main__":
    with listening("127.0.0.1", 0) as place, sync_playwright() as playwright:
        running = server(create_app(PRETRAINED))
        threading.Thread(target=running.run, kwargs={"sockets": [place]}).start()
        address = url("127.0.0.1", place.getsockname()[1])
        listed = requests.get(f"{address}/api/runs", timeout=60).json()["runs"]
        token = next(run["token"] for run in listed if run["name"] == MODEL)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        size = {"width": 1280, "height": 860}
        pages = {
            "wide": browser.new_page(viewport=size),
            "dark": browser.new_page(viewport=size, color_scheme="dark"),
            "phone": browser.new_page(viewport={"width": 390, "height": 844}, is_mobile=True),
        }
        take(address, token, pages)
        browser.close()
        running.should_exit = True
