"""Run docs/tutorial.ipynb in a folder and keep its pictures in docs/images: python tools/tutorial.py FOLDER  (4 min)"""

import json
import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from lddr.files import written_whole
from lddr.report.style import rendered

DOCS = Path(__file__).resolve().parents[1] / "docs"


def run(folder: Path) -> dict[str, Figure]:
    """The notebook's figures by the names of their files; trained models in the folder are used again."""
    cells = json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf-8"))["cells"]
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    plt.switch_backend("agg")
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    return {"tutorial-traversals": plt.figure(plt.get_fignums()[-1]), "tutorial-grids": names["grids"]}


if __name__ == "__main__":
    for name, figure in run(Path(sys.argv[1])).items():
        with written_whole(DOCS / "images" / f"{name}.png") as draft:
            draft.write_bytes(rendered(figure, dpi=90))
