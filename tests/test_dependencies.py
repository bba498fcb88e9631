"""Dependencies point one way: a package imports only those that come before it in this list.

The library never imports the reproduction of the paper, `lddr_paper`, at the top of a module.
"""

import ast
from pathlib import Path

import lddr

SOURCE = Path(lddr.__file__).parent
ORDER = [
    *("errors", "files", "registry", "console", "timing"),
    *("arrays", "statistics", "hardware", "schedules", "data", "settings", "parts", "losses", "latents"),
    *("likelihoods", "networks", "vae", "objectives", "models", "supervision"),
    *("config", "published_settings", "presets", "training", "metrics", "runs", "trained", "estimator", "selection"),
    *("bench", "sweeps", "seeds", "report", "sharing", "explorer", "demo", "cli"),
]


def imports():
    """Each import at the top of a module, as (package, imported package, where)."""
    for path in SOURCE.rglob("*.py"):
        package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.parse(path.read_text("utf-8")).body:
            match node:
                case ast.ImportFrom(module="lddr", names=names):
                    found = [name.name for name in names]
                case ast.ImportFrom(module=str(module)) if module.startswith("lddr."):
                    found = [module.split(".")[1]]
                case ast.Import(names=names):
                    found = [name.name.split(".")[1] for name in names if name.name.startswith("lddr.")]
                case _:
                    continue
            yield from ((package, each, f"{path.relative_to(SOURCE)}:{node.lineno}") for each in found)


def test_packages_import_only_those_before_them():
    rank = {name: place for place, name in enumerate(ORDER)}
    above = [found for found in imports() if found[0] in rank and rank[found[1]] > rank[found[0]]]
    assert above == []


def test_every_package_has_its_place():
    packages = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")}
    assert packages - {"__init__", "__main__"} == set(ORDER)


def test_the_library_does_not_import_the_reproduction():
    tops = {path: ast.parse(path.read_text("utf-8")).body for path in SOURCE.rglob("*.py")}
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path, body in tops.items()
        for node in body
        if isinstance(node, ast.Import | ast.ImportFrom) and "lddr_paper" in ast.unparse(node)
    ]
    assert found == []
