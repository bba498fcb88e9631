"""Chromium for tests of pages: what it logs and asks for is kept, so that a test can say that it is nothing."""


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
