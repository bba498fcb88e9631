"""Files of codes from anywhere: the arrays come out, or a sentence; `LDDR_FUZZ=10000` tries that many."""

import io
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lddr.cli import main
from lddr.errors import UserError
from lddr.metrics.evaluate import read_codes, score_codes

TRIED = int(os.environ.get("LDDR_FUZZ", "150"))
FUZZ = settings(max_examples=TRIED, deadline=None, suppress_health_check=list(HealthCheck), database=None)
GENERATOR = np.random.default_rng(0)
FACTORS = GENERATOR.integers([3, 4], size=(40, 2))
CODES = (FACTORS + GENERATOR.normal(0, 0.1, (40, 2))).astype(np.float32)
ARRAYS = {"codes": CODES, "factors": FACTORS, "factor_names": np.array(["shape", "colour"])}


def saved(path, compressed=False, **content):
    (np.savez_compressed if compressed else np.savez)(path, **content)
    return path


def npz_of(**members):
    """An archive of these bytes, whatever they are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def npy_of(array, **lies):
    """An array as .npy, with a header that may lie."""
    buffer, header = io.BytesIO(), np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(buffer, header | lies)
    return buffer.getvalue() + array.tobytes()


def test_what_was_saved_is_read(tmp_path):
    for compressed in (False, True):
        codes, table = read_codes(saved(tmp_path / "codes.npz", compressed, **ARRAYS))
        assert np.array_equal(codes, CODES)
        assert table.names == ("shape", "colour")
        assert np.array_equal(table.factors_of(np.arange(40)), FACTORS)


def test_names_factors_of_words_and_fortran_order_are_understood(tmp_path):
    words = np.array([b"a", b"b"])[FACTORS[:, :1] % 2]
    path = saved(tmp_path / "codes.npz", codes=np.asfortranarray(CODES), factors=words)
    codes, table = read_codes(path)
    assert np.array_equal(codes, CODES)
    assert table.factors[0].values == ("a", "b")
    assert table.names == ("factor 0",)
    assert read_codes(saved(path, codes=CODES))[1].factors == ()
    assert read_codes(saved(path, codes=CODES, factors=FACTORS[:, 0]))[1].sizes == (3,)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "expected an .npz file of numbers"),
        (b"file,codes\n1,2\n", "save it with numpy.savez"),
        (npy_of(CODES), "expected an .npz file of numbers"),  # an .npy that is called .npz
        (npz_of(latents=npy_of(CODES)), "no array 'codes', only: latents"),
        (npz_of(codes=b"no array"), "found something else"),
        (npz_of(codes=npy_of(CODES, shape=(10**12, 2))), "1000000000000x2 float32 under|1000000000000x2 float64 under"),
        (npz_of(codes=npy_of(CODES, shape=(10**30, 10**30))), "under 'codes', found"),
        (npz_of(codes=npy_of(CODES, shape=(-40, -2))), "the shape (-40, -2)"),
        (npz_of(codes=npy_of(CODES, descr="|O")), "found Python objects"),
        (npz_of(codes=npy_of(CODES, descr="<c8", shape=(40, 1))), "holds complex64"),
        (npz_of(codes=npy_of(CODES[:, 0])), "save numbers"),
        (npz_of(codes=npy_of(np.array([["a"]]))), "save numbers"),
        (npz_of(codes=npy_of(CODES[:0])), "save numbers"),
        (npz_of(codes=npy_of(CODES), factors=npy_of(FACTORS[:9])), "save it as (40 samples, factors)"),
        (npz_of(codes=npy_of(CODES), factors=npy_of(FACTORS + np.nan)), "the factor factor 0 has no known value"),
        (npz_of(codes=npy_of(CODES), factors=npy_of(FACTORS + np.inf)), "the factor factor 0 has infinite values"),
        (npz_of(codes=npy_of(CODES), factors=npy_of(FACTORS), factor_names=npy_of(np.array([["a", "b"]]))), "distinct"),
        (npz_of(codes=npy_of(CODES), factors=npy_of(FACTORS), factor_names=npy_of(np.array(["a", "a"]))), "distinct"),
        (npz_of(codes=npy_of(CODES), factors=npy_of(FACTORS), factor_names=npy_of(np.array([1, 2]))), "distinct"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(tmp_path, content, sentence):
    path = tmp_path / "codes.npz"
    path.write_bytes(content)
    with pytest.raises(UserError) as said:
        read_codes(path)
    assert any(part in str(said.value) for part in sentence.split("|"))
    assert str(path) in str(said.value)
    assert "\n" not in str(said.value)


def test_a_folder_and_a_missing_file_are_said(tmp_path):
    for path in (tmp_path, tmp_path / "none.npz"):
        with pytest.raises(UserError, match=r"found a broken one|there is no file"):
            read_codes(path)


def test_an_archive_that_unpacks_to_more_than_is_read_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("lddr.data.array_files.LARGEST_LOADED", 1000)
    with pytest.raises(UserError, match="at most 1,000 are read"):
        read_codes(saved(tmp_path / "codes.npz", compressed=True, codes=np.zeros((1000, 2))))


def test_names_with_markup_and_half_characters_are_shown(tmp_path, capsys):
    continuous = GENERATOR.normal(size=(40, 2))
    names = np.array(["[/bold]", "half \ud800 of one"])
    path = saved(tmp_path / "[red]codes.npz", codes=CODES, factors=continuous, factor_names=names)
    main(["score", str(path), "--metrics", "mig"])
    shown = capsys.readouterr().out
    assert "left out, [/bold] is continuous" in shown
    assert "half ? of one" in shown
    assert "[red]codes.npz" in shown


def damaged(draw, content):
    """Bytes with some of them changed, left out or put in."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, max(0, len(changed) - 1)))
        how = draw(st.sampled_from(["flip", "cut", "insert", "end", "copy"]))
        if how == "flip" and changed:
            changed[place] ^= draw(st.integers(1, 255))
        elif how == "cut":
            del changed[place : place + draw(st.integers(1, 40))]
        elif how == "insert":
            changed[place:place] = draw(st.binary(min_size=1, max_size=20))
        elif how == "end":
            del changed[place:]
        else:
            changed[place:place] = changed[: draw(st.integers(1, 60))]
    return bytes(changed)


def members(draw):
    """An archive whose members are damaged one by one, so that the archive itself is whole."""
    content = {name: npy_of(array) for name, array in ARRAYS.items()}
    name = draw(st.sampled_from(list(content)))
    return npz_of(**content | {name: damaged(draw, content[name])})


def headers(draw):
    """Headers that lie about shape and type."""
    shapes = st.lists(st.integers(-(2**40), 2**70) | st.integers(-2, 41), max_size=4).map(tuple)
    types = st.sampled_from(
        ["<f8", "<f4", "<f2", ">i8", "|O", "|V9", "<M8[s]", "<U3", "|S4", "<c16", "?", "<U999999999"]
    )
    lies = {"shape": draw(shapes)} if draw(st.booleans()) else {"descr": draw(types)}
    name = draw(st.sampled_from(list(ARRAYS)))
    content = {other: npy_of(array, **(lies if other == name else {})) for other, array in ARRAYS.items()}
    return npz_of(**content)


def archives(draw):
    whole = io.BytesIO()
    (np.savez if draw(st.booleans()) else np.savez_compressed)(whole, **ARRAYS)
    return damaged(draw, whole.getvalue())


@st.composite
def files(draw):
    return draw(st.sampled_from([archives, members, headers]))(draw)


@FUZZ
@given(files())
def test_no_bytes_end_in_a_traceback(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / f"fuzzed-{os.getpid()}.npz"
    path.write_bytes(content)
    try:
        codes, table = read_codes(path)
    except UserError:
        return
    assert codes.ndim == 2
    assert table.size == len(codes)
    " ".join(table.names).encode()


@st.composite
def tables(draw):
    """Numbers that are all right as a file and as little as can be as codes: few samples, extreme values, constants."""
    samples, latents, count = draw(st.integers(1, 12)), draw(st.integers(1, 3)), draw(st.integers(0, 3))
    numbers = st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e300, -1e300, 3.5, 1e16]) | st.floats(width=32)
    kind = draw(st.sampled_from([np.float64, np.float32, np.int64]))
    codes = draw(
        arrays.arrays(kind, (samples, latents)) | arrays.arrays(np.float64, (samples, latents), elements=numbers)
    )
    kind = draw(st.sampled_from([np.int64, np.uint64, np.float32, np.bool_, "U2"]))
    return codes, draw(arrays.arrays(kind, (samples, count)))


@FUZZ
@given(tables())
def test_any_numbers_have_scores_reasons_or_one_sentence(given):
    codes, factors = given
    try:
        entries = score_codes(codes, factors, jobs=1, quiet=True)
    except UserError:
        return
    for entry in entries.values():
        assert entry["score"] is None or np.isfinite(entry["score"]), entry


def test_the_command_says_it_without_a_traceback(tmp_path):
    path = tmp_path / "codes.npz"
    path.write_bytes(npz_of(codes=npy_of(CODES, shape=(10**12, 2))))
    command = [sys.executable, "-m", "lddr", "score", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("lddr: ")
    assert "Traceback" not in done.stderr
