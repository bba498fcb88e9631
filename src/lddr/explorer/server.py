"""The web application: one page, its files, and a small JSON API; it keeps no state about its clients."""

import asyncio
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from lddr.data.pictures import Preparation
from lddr.errors import UserError
from lddr.explorer.guard import LOOPBACK, Guard, Password
from lddr.explorer.runs import Catalogue, GoneError, all_scores, curves_of
from lddr.runs.index import Run

if TYPE_CHECKING:  # torch takes seconds to import, and the runs are listed without it
    import uvicorn

    from lddr.explorer.open_model import OpenModel, Pixels

STATIC = Path(__file__).parent / "static"
PICTURE_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/bmp": "BMP"}
LARGEST_BODY = 5_000_000  # bytes of a request
MOST_PIXELS = 16_000_000  # a few kilobytes can claim to be a picture of many gigabytes


def create_app(
    root: Path,
    password: str | None = None,
    names: frozenset[str] = LOOPBACK,
    is_public: bool = False,
    device: str = "auto",
) -> ASGIApp:
    """Create the application for the runs below a folder; `names` are its hosts, `is_public` if others may reach it."""
    # the guard is outermost, so that error responses are guarded, too
    return Guard(Explorer(root, device).app, None if password is None else Password(password), names, is_public)


def server(app: ASGIApp) -> "uvicorn.Server":
    """Return the server of the application; it needs a listening socket."""
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            log_level="warning",
            server_header=False,
            proxy_headers=False,  # otherwise a client could pretend to be another when it guesses passwords
            limit_concurrency=256,  # each connection takes a file descriptor of this process
            timeout_graceful_shutdown=2,
        )
    )


class Explorer:
    """The responses of each route; networks run in a thread pool, with one torch thread each."""

    def __init__(self, root: Path, device: str) -> None:
        self._catalogue, self._device = Catalogue(root), device
        self._pool = ThreadPoolExecutor(os.cpu_count(), "explorer", initializer=_use_one_thread)
        routes = [
            Route("/", lambda request: FileResponse(STATIC / "index.html")),
            Route("/api/runs", self._list_runs),
            self._from_files("", self._catalogue.about),
            self._from_files("/scores", all_scores),
            self._from_files("/log", curves_of),
            self._from_model("/model", self._describe),
            self._from_model("/space", lambda model, _: model.latent_space()),
            self._from_model("/reconstructions", lambda model, _: model.reconstructions()),
            self._from_model("/encode", _encode, "POST"),
            self._from_model("/decode", lambda model, body: model.decode(_fields(body).get("values")), "POST"),
            self._from_model("/traverse", _traverse, "POST"),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]
        errors = {UserError: self._mistake, HTTPException: _refused, ClientDisconnect: _gone, Exception: _broken}
        self.app = Starlette(routes=routes, exception_handlers=errors)

    def _list_runs(self, request: Request) -> Response:
        # importing torch takes seconds: do it after the runs are shown, but before the first one is opened
        load = BackgroundTask(self._pool.submit, import_module, "lddr.explorer.open_model")
        return BrowserJSON(self._catalogue.table(), background=load)

    def _from_files(self, path: str, read: Callable[[Run], dict[str, Any]]) -> Route:
        """Return a route whose response is made from the files of a run; Starlette calls it in a thread."""
        return Route(
            f"/api/runs/{{token}}{path}",
            lambda request: BrowserJSON(read(self._catalogue.run(request.path_params["token"]))),
        )

    def _from_model(self, path: str, ask: Callable[["OpenModel", Any], Any], method: str = "GET") -> Route:
        """Return a route whose response, a picture or a dictionary, is made by a model from the request's body."""

        async def respond(request: Request) -> Response:
            body = await _body(request) if method == "POST" else None

            def compute() -> Response:
                from lddr.explorer.open_model import open_model, png

                model = open_model(self._catalogue.folder(request.path_params["token"]), self._device)
                answer = ask(model, body)
                return (
                    BrowserJSON(answer) if isinstance(answer, dict) else Response(png(answer), media_type="image/png")
                )

            return await asyncio.get_running_loop().run_in_executor(self._pool, compute)

        return Route(f"/api/runs/{{token}}{path}", respond, methods=[method])

    def _describe(self, model: "OpenModel", _: None) -> dict[str, Any]:
        return model.description() | {"problem": self._catalogue.without_root(model.problem)}

    def _mistake(self, request: Request, error: Exception) -> Response:
        """Return one sentence, without the path of the runs on this machine."""
        return _message(404 if isinstance(error, GoneError) else 400, self._catalogue.without_root(str(error)) or "")


def _encode(model: "OpenModel", body: dict[str, Any] | bytes) -> dict[str, Any]:
    if isinstance(body, bytes):
        return model.encode_picture(from_upload(body, model.trained.preparation))
    return model.encode(body)


def _traverse(model: "OpenModel", body: dict[str, Any] | bytes) -> "Pixels":
    fields = _fields(body)
    return model.traverse(fields.get("values"), fields.get("latent"), fields.get("count"))


def _use_one_thread() -> None:
    import torch

    torch.set_num_threads(1)  # per worker, so that several users do not wait for each other


def from_upload(content: bytes, preparation: Preparation) -> "Pixels":
    """Read an uploaded picture and prepare it as the pictures that a model was trained on."""
    try:
        with Image.open(BytesIO(content), formats=tuple(PICTURE_FORMATS.values())) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise UserError(f"this picture has {picture.width}x{picture.height} pixels; send a smaller one")
            return preparation.of_picture(picture)
    except UserError:
        raise
    except Exception as error:  # untrusted bytes
        raise UserError("this file is not a readable picture; send a PNG, JPEG, WebP or BMP file") from error


async def _body(request: Request) -> dict[str, Any] | bytes:
    """Read the request's body: a JSON object, or the bytes of a picture."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and kind not in PICTURE_FORMATS:
        raise HTTPException(415, f"send JSON, or a picture as {', '.join(PICTURE_FORMATS)}")
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > LARGEST_BODY:
            raise HTTPException(413, f"this request is too large; the limit is {LARGEST_BODY / 1e6:g} MB")
    if kind in PICTURE_FORMATS:
        return bytes(content)
    try:
        return _fields(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, "this is not JSON") from error


def _fields(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise HTTPException(400, "send a JSON object")
    return body


class BrowserJSON(JSONResponse):
    """JSON that every browser can parse, whatever a run's files contain."""

    def render(self, content: Any) -> bytes:
        try:
            text = json.dumps(content, allow_nan=False)
        except ValueError:  # NaN and infinity become null
            text = json.dumps(json.loads(json.dumps(content), parse_constant=lambda _: None))
        return text.encode()  # ASCII: lone surrogates, as in names that are not UTF-8, are escaped


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _message(error.status_code, "there is nothing here" if error.status_code == 404 else error.detail)


def _gone(request: Request, error: Exception) -> Response:
    return _message(408, "the request was not completed")  # the client has disconnected


def _broken(request: Request, error: Exception) -> Response:
    """Send one sentence to the page; the server prints the traceback on the terminal."""
    return _message(500, f"the explorer failed ({type(error).__name__}); see the traceback in its terminal")


def _message(status: int, sentence: str) -> Response:
    return BrowserJSON({"message": sentence}, status)
