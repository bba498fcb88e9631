"""Chromium for tests of pages: what it logs and asks for is kept, so that a test can say that it is nothing."""

import shutil
from contextlib import contextmanager

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium_path():
    """Where the system's Chromium is; None leaves it to Playwright to find its own."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def launched():
    """A browser for as long as the block lasts."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=ARGUMENTS)
        yield browser
        browser.close()


class Visit:
    """A page from disk, with everything it said and every address it asked for."""

    def __init__(self, browser, path, width=1400, height=900, scheme="light", phone=False):
        self.context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            has_touch=phone,
            is_mobile=phone,
            device_scale_factor=2 if phone else 1,
        )
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.resolve().as_uri())

    @property
    def left(self):
        """The requests that went further than the file itself."""
        return [url for url in self.asked if not url.startswith(("data:", "file:"))]
