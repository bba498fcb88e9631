"""`lddr push`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from lddr.cli.app import LEFT_OUT, Folder, RunName, app

Word = Annotated[str | None, arg(metavar="NAME", help_behavior_hint=LEFT_OUT)]


@app.command
def push(
    run: RunName,
    repository: Annotated[Positional[str], arg(metavar="OWNER/NAME")],
    private: bool = False,
    revision: Word = None,
    license: Word = None,  # noqa: A002 (the Hub's word)
    root: Folder = Path("runs"),
) -> None:
    """Send a trained model to the Hugging Face Hub: weights, settings, scores, and a card with its traversals.

    It needs a login (hf auth login) or HF_TOKEN. In Python, lddr.Trained.from_pretrained("OWNER/NAME") gets it back.

    Args:
        run: A run's folder, or a part of its name or its fingerprint.
        repository: Where it goes; it is made if need be.
        private: Let nobody else see a repository that is made.
        revision: A branch other than main.
        license: Its licence, such as mit, for the card.
        root: Where to look for the run.
    """
    from lddr.runs.index import find_run
    from lddr.trained import Trained

    trained = Trained.load(find_run(run, root).folder)
    print(trained.push_to_hub(repository, private or None, revision=revision, license=license))
