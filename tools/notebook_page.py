"""A notebook as a page: its words as they stand, its code in blocks."""

import json


def text(notebook: str) -> str:
    """Markdown of a notebook's JSON; outputs are left out."""
    cells = json.loads(notebook)["cells"]
    return "\n\n".join(_cell(cell["cell_type"], "".join(cell["source"])) for cell in cells) + "\n"


def _cell(kind: str, source: str) -> str:
    return source if kind == "markdown" else f"```python\n{source}\n```"
