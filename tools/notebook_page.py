"""A notebook as a page: its text, its code in blocks, and the output of the code."""

import json
from typing import Any


def text(notebook: str) -> str:
    """Return the Markdown of a notebook's JSON; its pictures are linked in its text."""
    return "\n\n".join(map(_cell, json.loads(notebook)["cells"])) + "\n"


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    printed = "".join(line for output in cell["outputs"] for line in output.get("text", []))
    return f"```python\n{source}\n```" + (f"\n\n```text\n{printed}```" if printed else "")
