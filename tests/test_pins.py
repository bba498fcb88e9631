import re
from pathlib import Path
from runpy import run_path

ROOT = Path(__file__).parents[1]
TOOL = run_path(str(ROOT / "tools" / "hashes.py"))


def hashed(file):
    entry = r"^(\S+)==(\S+) \\(?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?)+$"
    return dict(re.findall(entry, (ROOT / file).read_text(), re.M))


def test_every_pinned_version_but_torch_has_its_checksums():
    pins = TOOL["pinned"]((ROOT / "constraints.txt").read_text())
    users, others = hashed("hashes.txt"), hashed("hashes-dev.txt")
    assert not set(users) & set(others)
    assert users | others == {name: version for name, version in pins.items() if name not in TOOL["UNCHECKED"]}
    assert pins["torch"] == "2.13.0"


def test_users_get_what_they_need_and_no_tools_of_the_project():
    users = set(hashed("hashes.txt"))
    assert {"numpy", "ray", "safetensors", "starlette", "tensorboard", "huggingface_hub"} <= users
    assert not {"wandb", "mlflow-skinny", "playwright", "mkdocs", "pytest", "ruff", "mypy"} & users


def test_the_checksums_of_one_version_are_found_on_a_page_of_the_index():
    files = ["a_b-1.0-py3-none-any.whl", "a-b-1.0.tar.gz", "a_b-1.0.1.tar.gz", "a_b_c-1.0.tar.gz", "A.B-1.0.zip"]
    links = [
        f'<a href="https://files/{file}#sha256={number:064x}" data-x="&gt;">{file}</a>'
        for number, file in enumerate(files)
    ]
    assert TOOL["checksums"]("\n".join(links), "a-b", "1.0") == [f"{number:064x}" for number in (0, 1, 4)]
