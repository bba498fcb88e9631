"""The web application: one page, its files, and a small JSON API; it keeps no state about its clients."""

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
    """Create the application for the runs below a folder; `names` are its hosts, `is_public` if others may reach it."""
    answers = Answers(root, device)
    handlers = {UserError: answers.mistake, HTTPException: _refused, ClientDisconnect: _gone, Exception: _broken}
    app = Starlette(routes=answers.routes(), exception_handlers=handlers)
    # outermost, so that error responses are guarded, too
    return Guard(app, None if password is None else Password(password), names, is_public)


def server(app: ASGIApp) -> "uvicorn.Server":
    """Return the server of the application; it needs a listening socket."""
    import uvicorn

    from lddr.explorer.guard import PatientProtocol

    settings: dict[str, Any] = {"log_level": "warning", "server_header": False, "ws": "none", "http": PatientProtocol}
    settings["proxy_headers"] = False  # otherwise any local process could send wrong passwords from any address
    return uvicorn.Server(uvicorn.Config(app, timeout_graceful_shutdown=2, **settings))


class BrowserJSON(JSONResponse):
    """JSON that every browser can parse, whatever a run's files contain."""

    def render(self, content: Any) -> bytes:
        try:
            text = json.dumps(content, allow_nan=False)
        except ValueError:  # NaN and infinity become null
            text = json.dumps(json.loads(json.dumps(content), parse_constant=lambda _: None))
        return text.encode()  # ASCII: lone surrogates, as in names that are not UTF-8, are escaped


class Answers:
    """The responses of each route; networks run in a thread pool, with one torch thread each."""

    def __init__(self, root: Path, device: str) -> None:
        self.catalogue, self._device = Catalogue(root), device
        self._pool = ThreadPoolExecutor(os.cpu_count(), "explorer", initializer=_one_thread)
        self._decoder = ThreadPoolExecutor(1, "pictures")  # separate, so that sliders never wait for large pictures
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
        # importing torch takes seconds: do it after the runs are shown, but before the first one is opened
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
        """Encode an uploaded picture, or an image of the dataset by number or by factors."""
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
        """Read and prepare an uploaded picture; a few uploads are accepted at once, and decoded one at a time."""
        if self._uploads >= MOST_UPLOADS:
            raise HTTPException(503, "many pictures are being sent at the moment; send this one again")
        self._uploads += 1
        try:
            content = await _body(request, LARGEST_UPLOAD)
            return await asyncio.get_running_loop().run_in_executor(self._decoder, from_upload, content, preparation)
        finally:
            self._uploads -= 1

    def mistake(self, request: Request, error: Exception) -> Response:
        """Return one sentence, without the path of the runs on this machine."""
        return _message(404 if isinstance(error, GoneError) else 400, self.catalogue.without_place(str(error)) or "")

    async def _read(self, request: Request, read: Callable[[Run], T]) -> T:
        """Read something from the files of the requested run."""
        return await asyncio.to_thread(lambda: read(self.catalogue.run(request.path_params["token"])))

    async def _ask(self, request: Request, ask: Callable[["OpenModel"], T]) -> T:
        """Call a function of the requested run's model."""

        def answer() -> T:
            from lddr.explorer.models import opened

            return ask(opened(self.catalogue.folder(request.path_params["token"]), self._device))

        return await asyncio.get_running_loop().run_in_executor(self._pool, answer)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)  # torch threads per worker: so that several users do not wait for each other


async def _page(request: Request) -> Response:
    return FileResponse(STATIC / "index.html")


def _picture(content: bytes) -> Response:
    return Response(content, media_type="image/png")


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _body(request: Request, limit: int) -> bytes:
    """Read the request's body, up to the limit."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > limit:
            raise HTTPException(413, f"this is too much to send; {limit / 1e6:g} MB are the limit")
    return bytes(content)


async def _question(request: Request) -> dict[str, Any]:
    """Parse the body as a JSON object."""
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
    return _message(408, "the request never ended")  # the client is gone


def _broken(request: Request, error: Exception) -> Response:
    """Print the traceback on the terminal, and send one sentence to the page."""
    return _message(500, f"the explorer could not do this ({type(error).__name__}); its terminal says more")


def _message(status: int, sentence: str) -> Response:
    return BrowserJSON({"message": sentence}, status)
