"""Models on the Hugging Face Hub: safetensors, settings, scores and a card; nothing that has to be unpickled."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lddr
from lddr.errors import UserError
from lddr.extras import check_installed
from lddr.files import reason_of
from lddr.runs.folder import CONFIG, LOG, MODEL, SCORES, RunFolder
from lddr.sharing.card import CARD, PICTURE, write_card
from lddr.sharing.pack import pack, run_of
from lddr.trained import Trained

FILES = (CARD, CONFIG, LOG, MODEL, PICTURE, SCORES)  # all that is ever sent or fetched
LOGIN = "log in with: hf auth login, or give a token"


def push(
    trained: Trained,
    repository: str,
    private: bool | None = None,
    token: str | None = None,
    revision: str | None = None,
    licence: str | None = None,
) -> str:
    """Send a model with its card in one commit, to a repository that is made if need be; gives its address."""
    check_installed("huggingface_hub")
    from huggingface_hub import CommitOperationAdd, HfApi

    api = HfApi(token=token, library_name="lddr", library_version=lddr.__version__)
    with TemporaryDirectory() as place:
        packed = pack(trained, Path(place))
        with _asking(f"cannot push to {repository}"):
            there = api.create_repo(repository, private=private, exist_ok=True)
            if revision is not None:
                api.create_branch(there.repo_id, branch=revision, exist_ok=True)
        write_card(packed, there.repo_id, run_of(trained), licence)
        files = [packed.path / name for name in FILES if (packed.path / name).exists()]
        additions = [CommitOperationAdd(file.name, file) for file in files]
        with _asking(f"cannot push to {repository}"):
            api.create_commit(there.repo_id, additions, commit_message="Add a model of lddr", revision=revision)
    return str(there)


def fetch(repository: str, revision: str | None = None, token: str | None = None) -> Path:
    """The folder of a repository's model, downloaded unless it is there; no files but lddr's are fetched."""
    check_installed("huggingface_hub")
    from huggingface_hub import snapshot_download

    options: dict[str, Any] = {"allow_patterns": list(FILES), "library_name": "lddr"}
    with _asking(f"there is no folder {repository}, and it cannot be had from the Hugging Face Hub"):
        folder = RunFolder(snapshot_download(repository, revision=revision, token=token, **options))
    if not folder.model_file.exists():
        raise UserError(f"{repository} is no model of lddr: it has no {MODEL}; choose another repository")
    return folder.path


def pull(repository: str, revision: str | None = None, token: str | None = None) -> Trained:
    """The model of a repository; what is in it is checked as in any run folder."""
    folder = RunFolder(fetch(repository, revision, token))
    try:
        trained = Trained.load(folder.path)
        if folder.is_run and folder.config != trained.config:
            raise UserError(f"{CONFIG} holds other settings than {MODEL}")
    except UserError as error:
        words = str(error).replace(f"{folder.path}/", "")
        raise UserError(f"{repository} is no model of lddr that can be used: {words}") from error
    return trained


@contextmanager
def _asking(failure: str) -> Iterator[None]:
    """Whatever goes wrong on the way to the Hub and back is one sentence that says what to do."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

    try:
        yield
    except HFValidationError as error:
        raise UserError(f"{failure}: a repository is called OWNER/NAME ({reason_of(error)})") from error
    except LocalTokenNotFoundError as error:
        raise UserError(f"{failure}: nobody is logged in; {LOGIN}") from error
    except HfHubHTTPError as error:
        raise UserError(f"{failure}: {_answered(error)}") from error
    except Exception as error:  # what libraries raise on a network has no end
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
        raise UserError(f"{failure} ({reason_of(cause)}); check the connection and try again") from error


def _answered(error: Any) -> str:
    """What an answer of the Hub means for the user."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    status = error.response.status_code
    if isinstance(error, RevisionNotFoundError):
        return "there is no such revision; correct it or leave it out"
    if isinstance(error, GatedRepoError):
        return "its owner has to let you in; ask on its page, then log in"
    if status == 401:
        return f"the Hub does not know you, or there is none of this name; {LOGIN}"
    if isinstance(error, RepositoryNotFoundError):
        return f"there is none of this name, or it is private; correct the name, or {LOGIN}"
    if status == 403:
        return "you may not do this there; choose a name of your own, or a token that may write"
    return f"the Hub says {reason_of(error)}; try again later"
