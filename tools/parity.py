"""Our scores compared with plain implementations of their definitions: `python tools/parity.py` writes docs/parity.md.

`--published` computes all values anew first, ours and the others, and keeps them in tests/metrics/parity/values.json.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.metrics.parity.circles import CIRCLES, grid_of, ours_on_circles  # noqa: E402
from tests.metrics.parity.rows import DLIB, TABLE  # noqa: E402
from tests.metrics.parity.tables import KINDS  # noqa: E402
from tests.metrics.parity.traps import TRAPS  # noqa: E402

VALUES, PAGE = ROOT / "tests" / "metrics" / "parity" / "values.json", ROOT / "docs" / "parity.md"
MODELS = {
    "gap": "the paper, §3.3: tests/metrics/test_gap.py works it out again from the model's public functions",
    "elbo": "Kingma & Welling 2014: tests/metrics/test_elbo.py holds it against log p(x), summed over all codes",
    "pipe": "DAVA (ICLR 2023): tests/metrics/test_pipe.py has models whose answer is known",
}


def measured():
    """All values: (row, kind) → ours and published."""
    from importlib.metadata import version

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = {row.title: {kind: pair(row.plain(kind), row.ours(kind)) for kind in KINDS} for row in TABLE}
        circles = {
            title: {
                kind: pair(other(grid_of(kind), np.random.default_rng(0)), ours_on_circles(name, kind))
                for kind in KINDS
            }
            for name, (title, other, _) in CIRCLES.items()
        }
        traps = [{"published": number(right(kind)), "other": number(wrong(kind))} for *_, kind, right, wrong in TRAPS]
    made = {name: version(name) for name in ("numpy", "scikit-learn", "scipy")}
    return {
        "made by": "python tools/parity.py --published",
        "with": made,
        "tables": rows,
        "circles": circles,
        "traps": traps,
    }


def pair(published, own):
    return {"published": number(published), "ours": number(own)}


def number(value):
    return round(float(value), 9)


def page(values):
    """The text between the marks of docs/parity.md is made; what stands around them is kept."""
    text = PAGE.read_text()
    for name, made in (("tables", scores(values)), ("traps", traps(values))):
        before, mark, rest = text.partition(f"<!-- made: {name} -->\n")
        _, end, after = rest.partition("<!-- made until here -->")
        text = f"{before}{mark}{made}{end}{after}"
    return text


def scores(values):
    lines = [["metric", "what", *KINDS], ["---"] * 2 + ["---:"] * len(KINDS)]
    for row in TABLE:
        cells = [cell(values["tables"][row.title][kind]) for kind in KINDS]
        lines.append([f"`{row.metric}`", row.title + (f" ({row.source})" if row.source != DLIB else ""), *cells])
    for name, (title, *_) in CIRCLES.items():
        lines.append([f"`{name}`", f"{title}, on circles", *(cell(values["circles"][title][kind]) for kind in KINDS)])
    lines += [[f"`{name}`", f"needs a trained model: {why}", *["-"] * len(KINDS)] for name, why in MODELS.items()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cell(values):
    """One number where four digits agree, else both."""
    own, other = f"{values['ours']:.4f}", f"{values['published']:.4f}"
    return own if own == other else f"{own} ({other})"


def traps(values):
    lines = [["what", "seen in", "score", "codes", "published", "with it"], ["---"] * 4 + ["---:"] * 2]
    for (*words, _, _), found in zip(TRAPS, values["traps"], strict=True):
        lines.append([*words, f"{found['published']:.3f}", f"{found['other']:.3f}"])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main():
    if "--published" in sys.argv:
        VALUES.write_text(json.dumps(measured(), indent=1) + "\n")
    PAGE.write_text(page(json.loads(VALUES.read_text())))


if __name__ == "__main__":
    main()
