import os
from pathlib import Path

import pytest

from lddr.errors import UserError
from lddr.foreign import content_of, foreign


@pytest.mark.parametrize(
    "error", [ValueError("a\nb"), MemoryError(), RecursionError(), OverflowError(), OSError(5, "x")]
)
def test_whatever_a_library_raises_is_one_sentence(error: Exception) -> None:
    with pytest.raises(UserError) as said, foreign("a.bin", "a whole file", "get it again"):
        raise error
    words = {ValueError: "a b", OSError: "x"}.get(type(error), type(error).__name__)
    assert str(said.value) == f"a.bin: expected a whole file, found a broken one ({words}); get it again"
    assert said.value.__cause__ is error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), UserError("a sentence about a.bin")])
def test_what_is_no_fault_of_the_file_goes_through(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised, foreign("a.bin", "a whole file"):
        raise error
    assert raised.value is error


def test_a_file_that_is_not_there_is_not_called_broken() -> None:
    with pytest.raises(UserError, match=r"^there is no file none\.bin; put it there or correct the path"):
        with foreign("none.bin", "a whole file"):
            Path("none.bin").read_bytes()


def test_sentences_name_the_file_once() -> None:
    for said in ("a sentence of ours", "a.bin: a sentence of ours"):
        with pytest.raises(UserError, match=r"^a\.bin: a sentence of ours$"), foreign("a.bin", "a whole file"):
            raise UserError(said)


def test_long_words_of_a_library_are_cut() -> None:
    with pytest.raises(UserError) as said, foreign("a.bin", "a whole file"):
        raise ValueError("x" * 10_000)
    assert len(str(said.value)) < 400


def test_only_plain_files_of_a_bounded_length_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "nowhere").symlink_to("none")
    os.mkfifo(tmp_path / "pipe")
    assert content_of(tmp_path / "file", 5) == b"12345"
    with pytest.raises(ValueError, match="more than 4 bytes"):
        content_of(tmp_path / "file", 4)
    for name in ("link", "nowhere", "pipe", "."):
        with pytest.raises(ValueError, match="no plain file"):
            content_of(tmp_path / name, 5)
    with pytest.raises(FileNotFoundError):
        content_of(tmp_path / "none", 5)
