"""A notebook as a page: its words as they stand, its code in blocks, and what the code printed."""

import json
from typing import Any


def text(notebook: str) -> str:
    """Markdown of a notebook's JSON; its pictures are in its words."""
    return "\n\n".join(map(_cell, json.loads(notebook)["cells"])) + "\n"


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    said = "".join(line for output in cell["outputs"] for line in output.get("text", []))
    return f"```python\n{source}\n```" + (f"\n\n```text\n{said}```" if said else "")
