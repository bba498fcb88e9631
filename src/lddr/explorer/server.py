"""The web application: one page, its files, and a small JSON interface; nothing is remembered about who asks."""

import asyncio
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from lddr.errors import UserError
from lddr.explorer.catalogue import Catalogue, GoneError
from lddr.explorer.guard import LOOPBACK, Guard, Password
from lddr.explorer.pictures import LARGEST_UPLOAD, PICTURE_FORMATS, Pixels, from_upload, png
from lddr.explorer.scores import all_scores, curves_of, known_information
from lddr.runs.index import Run

if TYPE_CHECKING:
    import uvicorn

    from lddr.data.pictures import Preparation
    from lddr.explorer.open_model import OpenModel

STATIC = Path(__file__).parent / "static"
LARGEST_QUESTION = 100_000  # bytes of JSON
MOST_UPLOADS = 8  # at once
T = TypeVar("T")


def create_app(
    root: Path,
    password: str | None = None,
    names: frozenset[str] = LOOPBACK,
    is_public: bool = False,
    device: str = "auto",
) -> ASGIApp:
    """The application over the runs below a folder, called by these names; `is_public` if others may reach it."""
    answers = Answers(root, device)
    handlers = {UserError: answers.mistake, HTTPException: _refused, ClientDisconnect: _gone, Exception: _broken}
    app = Starlette(routes=answers.routes(), exception_handlers=handlers)
    # around everything, so that the answer to an error is guarded too
    return Guard(app, None if password is None else Password(password), names, is_public)


def server(app: ASGIApp) -> "uvicorn.Server":
    """What serves the application; it needs a socket that listens."""
    import uvicorn

    from lddr.explorer.guard import PatientProtocol

    settings: dict[str, Any] = {"log_level": "warning", "server_header": False, "ws": "none", "http": PatientProtocol}
    settings["proxy_headers"] = False  # or anybody on this machine could give wrong passwords under any address
    return uvicorn.Server(uvicorn.Config(app, timeout_graceful_shutdown=2, **settings))


class BrowserJSON(JSONResponse):
    """JSON that every browser reads, whatever the files of a run hold."""

    def render(self, content: Any) -> bytes:
        try:
            text = json.dumps(content, allow_nan=False)
        except ValueError:  # what is no number is nothing
            text = json.dumps(json.loads(json.dumps(content), parse_constant=lambda _: None))
        return text.encode()  # ASCII: half a character, such as a name that is no UTF-8 has, is escaped


class Answers:
    """What each address answers; the networks run in a few threads of their own, with one thread of torch each."""

    def __init__(self, root: Path, device: str) -> None:
        self.catalogue, self._device = Catalogue(root), device
        self._pool = ThreadPoolExecutor(os.cpu_count(), "explorer", initializer=_one_thread)
        self._decoder = ThreadPoolExecutor(1, "pictures")  # apart, so that nobody's slider waits for large pictures
        self._uploads = 0

    def routes(self) -> list[Route | Mount]:
        run = "/api/runs/{token}"
        return [
            Route("/", _page),
            Route("/api/runs", self.runs),
            Route(run, self.run),
            Route(f"{run}/scores", self.scores),
            Route(f"{run}/log", self.log),
            Route(f"{run}/model", self.model),
            Route(f"{run}/space", self.space),
            Route(f"{run}/reconstructions", self.reconstructions),
            Route(f"{run}/encode", self.encode, methods=["POST"]),
            Route(f"{run}/decode", self.decode, methods=["POST"]),
            Route(f"{run}/traverse", self.traverse, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

    async def runs(self, request: Request) -> Response:
        table = await asyncio.to_thread(self.catalogue.table)
        # importing torch takes seconds: not before the runs are on the screen, and not when the first one is opened
        return BrowserJSON(table, background=BackgroundTask(self._pool.submit, import_module, "lddr.explorer.models"))

    async def run(self, request: Request) -> Response:
        return BrowserJSON(await asyncio.to_thread(self.catalogue.about, request.path_params["token"]))

    async def scores(self, request: Request) -> Response:
        return BrowserJSON(await self._read(request, all_scores))

    async def log(self, request: Request) -> Response:
        return BrowserJSON(await self._read(request, curves_of))

    async def model(self, request: Request) -> Response:
        known, unnamed = await self._read(request, known_information)
        about = await self._ask(request, lambda opened: opened.description(known))
        return BrowserJSON(about | {"unnamed": unnamed, "problem": self.catalogue.without_place(about["problem"])})

    async def space(self, request: Request) -> Response:
        return BrowserJSON(await self._ask(request, lambda opened: opened.latent_space()))

    async def reconstructions(self, request: Request) -> Response:
        return _picture(await self._ask(request, lambda opened: png(opened.reconstructions())))

    async def encode(self, request: Request) -> Response:
        """A picture that is sent, or one of the dataset's by number or by factors."""
        if _kind(request) in PICTURE_FORMATS:
            picture = await self._uploaded(request, await self._ask(request, lambda opened: opened.trained.preparation))
            return BrowserJSON(await self._ask(request, lambda opened: opened.sent(picture)))
        choice = await _question(request)
        return BrowserJSON(await self._ask(request, lambda opened: opened.of_dataset(choice)))

    async def decode(self, request: Request) -> Response:
        values = (await _question(request)).get("values")
        return _picture(await self._ask(request, lambda opened: png(opened.decoded(values))))

    async def traverse(self, request: Request) -> Response:
        question = await _question(request)
        wanted = [question.get(name) for name in ("values", "latent", "count")]
        return _picture(await self._ask(request, lambda opened: png(opened.traversal(*wanted))))

    async def _uploaded(self, request: Request, preparation: "Preparation") -> Pixels:
        """A picture that is sent, prepared; a few are taken at once, and decoded one after the other."""
        if self._uploads >= MOST_UPLOADS:
            raise HTTPException(503, "many pictures are being sent at the moment; send this one again")
        self._uploads += 1
        try:
            content = await _body(request, LARGEST_UPLOAD)
            return await asyncio.get_running_loop().run_in_executor(self._decoder, from_upload, content, preparation)
        finally:
            self._uploads -= 1

    def mistake(self, request: Request, error: Exception) -> Response:
        """One sentence, without the place of the runs on this machine."""
        return _message(404 if isinstance(error, GoneError) else 400, self.catalogue.without_place(str(error)) or "")

    async def _read(self, request: Request, read: Callable[[Run], T]) -> T:
        """Something from the files of the run that is asked for."""
        return await asyncio.to_thread(lambda: read(self.catalogue.run(request.path_params["token"])))

    async def _ask(self, request: Request, ask: Callable[["OpenModel"], T]) -> T:
        """Something of the model of the run that is asked for."""

        def answer() -> T:
            from lddr.explorer.models import opened

            return ask(opened(self.catalogue.folder(request.path_params["token"]), self._device))

        return await asyncio.get_running_loop().run_in_executor(self._pool, answer)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)  # of torch, in each of ours: several people do not wait for each other


async def _page(request: Request) -> Response:
    return FileResponse(STATIC / "index.html")


def _picture(content: bytes) -> Response:
    return Response(content, media_type="image/png")


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _body(request: Request, limit: int) -> bytes:
    """What was sent, read no further than the limit."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > limit:
            raise HTTPException(413, f"this is too much to send; {limit / 1e6:g} MB are the limit")
    return bytes(content)


async def _question(request: Request) -> dict[str, Any]:
    """The JSON object that was sent."""
    if _kind(request) != "application/json":
        raise HTTPException(415, f"send JSON, or a picture as {', '.join(PICTURE_FORMATS)}")
    try:
        question = json.loads(await _body(request, LARGEST_QUESTION))
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, "this is no JSON") from error
    if not isinstance(question, dict):
        raise HTTPException(400, "send a JSON object")
    return question


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _message(error.status_code, "there is nothing here" if error.status_code == 404 else error.detail)


def _gone(request: Request, error: Exception) -> Response:
    return _message(408, "the request never ended")  # nobody reads this


def _broken(request: Request, error: Exception) -> Response:
    """The traceback goes to the terminal, a sentence to the page."""
    return _message(500, f"the explorer could not do this ({type(error).__name__}); its terminal says more")


def _message(status: int, sentence: str) -> Response:
    return BrowserJSON({"message": sentence}, status)
