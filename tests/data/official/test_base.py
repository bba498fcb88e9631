from pathlib import Path

import pytest

from lddr.data.dataset import datasets
from lddr.data.official import Official
from lddr.errors import UserError

SIZES = {
    "dsprites": (3, 6, 40, 32, 32),
    "color_dsprites": (3, 6, 40, 32, 32),
    "noisy_dsprites": (3, 6, 40, 32, 32),
    "smallnorb": (5, 9, 18, 6),
    "cars3d": (4, 24, 183),
    "shapes3d": (10, 10, 10, 8, 4, 15),
    "mpi3d_toy": (6, 6, 2, 3, 3, 40, 40),
    "mpi3d_realistic": (6, 6, 2, 3, 3, 40, 40),
    "mpi3d_real": (6, 6, 2, 3, 3, 40, 40),
    "mpi3d_real_complex": (4, 4, 2, 3, 3, 40, 40),
    "falcor3d": (5, 6, 6, 6, 6, 6, 6),
    "isaac3d": (3, 8, 5, 4, 4, 4, 6, 4, 4),
}
LENGTHS = {"smallnorb": 48600, "cars3d": 17568, "shapes3d": 480_000, "mpi3d_real": 1_036_800, "noisy_dsprites": 737_280}
LENGTHS |= {"mpi3d_real_complex": 460_800, "falcor3d": 233_280, "isaac3d": 737_280}


@pytest.fixture(params=[name for name in datasets if issubclass(datasets[name], Official)])
def official(request: pytest.FixtureRequest) -> type[Official]:
    kind = datasets[request.param]
    assert issubclass(kind, Official)
    return kind


def touch(folder: Path, official: type[Official]) -> list[Path]:
    """Empty files under the second-best names of the dataset's files."""
    paths = [folder / names[-1] for names in official.files]
    if official.name == "cars3d":
        paths = [folder / "cars" / name for name in ("a.mat", "b.mat")]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return paths


def test_a_listing_needs_no_files(official: type[Official], data: Path) -> None:
    assert official.found() == []
    assert datasets[official.name] is official
    assert official.space.sizes == SIZES.get(official.name, official.space.sizes)
    assert official.space.size == LENGTHS.get(official.name, official.space.size)
    assert official.image_shape[:2] == (64, 64)
    assert official.origin == ("official files" if official.needs_files else "redrawn or official file")


def test_missing_files_are_said_with_how_to_get_them(
    official: type[Official], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISENTANGLEMENT_LIB_DATA", str(tmp_path / "theirs"))
    where = f"{tmp_path}/data, {tmp_path}/theirs or {tmp_path}/cache/lddr"
    if not official.needs_files:
        assert official().origin == "redrawn"
        return
    with pytest.raises(UserError) as caught:
        official()
    how = (
        "get it with: lddr data download "
        if official.remotes
        else f"download it with a browser from {official.address}"
    )
    assert str(caught.value).startswith(f"{official.title} not found under {where}; {how}")


@pytest.mark.parametrize(
    ("name", "end"),
    [("shapes3d", "shapes3d (268 MB)"), ("smallnorb", "smallnorb (263 MB)"), ("mpi3d_toy", "mpi3d_toy")],
)
def test_the_size_of_a_download_is_said_where_it_is_known(name: str, end: str, data: Path) -> None:
    with pytest.raises(UserError, match=r"lddr data download") as caught:
        datasets[name]()
    assert str(caught.value).endswith(f"lddr data download {end}")


@pytest.mark.parametrize("place", ["LDDR_DATA", "DISENTANGLEMENT_LIB_DATA", "cache"])
def test_files_are_found_in_every_place(
    official: type[Official], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    folder = {"LDDR_DATA": data, "cache": tmp_path / "cache" / "lddr"}.get(place, tmp_path / "theirs")
    monkeypatch.setenv("DISENTANGLEMENT_LIB_DATA", str(tmp_path / "theirs"))
    assert touch(folder, official) == official.found()


def test_what_a_download_writes_is_found(official: type[Official], data: Path) -> None:
    for remote in official.remotes:
        path = data / remote.path / "car.mat" if remote.members else data / remote.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert len(official.found()) == len(official.remotes) or not official.remotes


def test_addresses_and_checksums_are_complete(official: type[Official]) -> None:
    for remote in official.remotes:
        kind, digest = remote.checksum.split(":")
        assert len(bytes.fromhex(digest)) == {"sha256": 32, "md5": 16}[kind]
        for address in remote.addresses():
            assert address.startswith(("https://", "http://www.scottreed.info"))
            assert remote.members or address.rsplit("/")[-1] == remote.path.rsplit("/")[-1]


def test_one_missing_file_of_several_is_named(data: Path) -> None:
    *_, last = touch(data, datasets["smallnorb"])
    last.unlink()
    assert datasets["smallnorb"].found() == []
    with pytest.raises(UserError, match=r"^small_norb/\S+testing-info.mat of SmallNORB not found under"):
        datasets["smallnorb"]()
