"""Write hashes.txt: the versions of constraints.txt with the checksums that the package index publishes for them.

Torch is left out: its builds for CPU and for each kind of GPU share a version and come from different places.
"""

import html
import os
import re
import sys
import urllib.request
from pathlib import Path

from pip._internal.models.index import PyPI

INDEX = os.environ.get("PIP_INDEX_URL", PyPI.simple_url).rstrip("/")
UNCHECKED = ("torch",)
HEAD = "# Made by `make pins` from constraints.txt: what setting up installs is compared with these checksums.\n"
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


def main() -> None:
    lines = [HEAD]
    for name, version in pinned(Path("constraints.txt").read_text()).items():
        if name in UNCHECKED:
            continue
        with urllib.request.urlopen(f"{INDEX}/{re.sub(r'[-_.]+', '-', name).lower()}/") as answer:
            found = checksums(answer.read().decode(), name, version)
        if not found:
            sys.exit(f"the index has no checksum of {name} {version}")
        lines.append(f"{name}=={version} \\\n" + " \\\n".join(f"    --hash=sha256:{each}" for each in found) + "\n")
    Path("hashes.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
