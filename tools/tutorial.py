"""Run docs/tutorial.ipynb in a folder: python tools/tutorial.py FOLDER  (4 min)

Its output is kept in the notebook, its figures in docs/images.
"""

import json
import os
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from lddr.files import written_whole
from lddr.report.style import rendered

DOCS = Path(__file__).resolve().parents[1] / "docs"


def run(folder: Path, notebook: dict) -> dict[str, Figure]:
    """Return the notebook's figures by the names of their files; trained models in the folder are used again."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    plt.switch_backend("agg")
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            with redirect_stdout(StringIO()) as printed:
                exec("".join(cell["source"]), names)
            lines = printed.getvalue().splitlines(keepends=True)
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
    first, *_, last = plt.get_fignums()
    figures = {"tutorial-images": plt.figure(first), "tutorial-traversals": plt.figure(last)}
    return figures | {"tutorial-grids": names["grids"]}


if __name__ == "__main__":
    path = DOCS / "tutorial.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for name, figure in run(Path(sys.argv[1]), notebook).items():
        with written_whole(DOCS / "images" / f"{name}.png") as draft:
            draft.write_bytes(rendered(figure, dpi=90))
    with written_whole(path) as draft:
        draft.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
