"""Write the pinned versions of constraints.txt with the checksums that the package index publishes for them.

hashes.txt has the packages that `.[all]` needs, which `make demo` installs; hashes-dev.txt has the others, for tests
and docs. Run it in the environment that `make pins` has built. Torch is left out: its builds for CPU and for each
type of GPU share a version and come from different places.
"""

import html
import os
import re
import sys
import urllib.request
from importlib.metadata import requires
from pathlib import Path

from pip._internal.models.index import PyPI
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name

INDEX = os.environ.get("PIP_INDEX_URL", PyPI.simple_url).rstrip("/")
UNCHECKED = ("torch",)
HEAD = "# Made by `make pins` from constraints.txt: pip installs only files with these checksums.\n"
_LINK = re.compile(r'<a [^>]*href="[^"#]*/([^"#/]+)#sha256=([0-9a-f]{64})"')


def pinned(constraints: str) -> dict[str, str]:
    """The version of every package."""
    lines = (line.partition("#")[0].strip() for line in constraints.splitlines())
    return dict(line.split("==") for line in lines if line)


def checksums(page: str, name: str, version: str) -> list[str]:
    """Those of the wheels and the source archive of one version."""
    plain = re.sub(r"[-_.]+", "[-_.]+", name)
    wanted = re.compile(rf"{plain}-{re.escape(version)}(-.*\.whl|\.tar\.gz|\.zip)", re.IGNORECASE)
    return sorted({checksum for file, checksum in _LINK.findall(html.unescape(page)) if wanted.fullmatch(file)})


def needed(name: str, extra: str = "", found: set[tuple[str, str]] | None = None) -> set[str]:
    """Return the packages that an installed one needs on this system, with one of its extras, directly or not."""
    found = set() if found is None else found
    if (name, extra) not in found:
        found.add((name, extra))
        for requirement in map(Requirement, requires(name) or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                for each in ["", *requirement.extras]:
                    needed(canonicalize_name(requirement.name), each, found)
    return {package for package, _ in found}


def hashed(name: str, version: str) -> str:
    """Return the lines of one package."""
    with urllib.request.urlopen(f"{INDEX}/{canonicalize_name(name)}/") as answer:
        found = checksums(answer.read().decode(), name, version)
    if not found:
        sys.exit(f"the index has no checksum of {name} {version}")
    return f"{name}=={version} \\\n" + " \\\n".join(f"    --hash=sha256:{each}" for each in found) + "\n"


def main() -> None:
    users = needed("lddr", "all")
    files = {"hashes.txt": [HEAD], "hashes-dev.txt": [HEAD]}
    for name, version in pinned(Path("constraints.txt").read_text()).items():
        if name not in UNCHECKED:
            files["hashes.txt" if canonicalize_name(name) in users else "hashes-dev.txt"].append(hashed(name, version))
    for file, lines in files.items():
        Path(file).write_text("".join(lines))


if __name__ == "__main__":
    main()
