"""Results published by others, with other networks than the paper's: for comparison with ours, not as a target."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from lddr.report.tables.table import Number


@cache
def others_results() -> dict[str, Any]:
    """Return their numbers in percent, each set with its source and protocol."""
    return json.loads((files("lddr.report") / "others_results.json").read_text(encoding="utf-8"))


def others_infomec(model: str, part: str, dataset: str | None) -> Number | None:
    """Return InfoM, InfoC or InfoE ("infom", …) of a model on one of the paper's datasets."""
    value = others_results()["infomec"].get(model.replace("-", "_"), {}).get(dataset, {}).get(part)
    return None if value is None else Number(value)
