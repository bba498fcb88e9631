import errno
import os
from pathlib import Path

import pytest

from lddr.errors import UserError
from lddr.files import content_of, reading_untrusted, written_whole


def test_a_file_appears_when_the_block_ends(tmp_path):
    target = tmp_path / "new" / "a.txt"
    with written_whole(target) as draft:
        draft.write_text("whole")
        assert not target.exists()
        assert draft.suffix == ".txt"
    assert target.read_text() == "whole"
    assert list(target.parent.iterdir()) == [target]


def test_an_error_leaves_the_old_file_and_no_draft(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError, match="boom"), written_whole(target) as draft:
        draft.write_text("half")
        raise RuntimeError("boom")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_an_unwritable_place_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*free it or choose another place"):
        with written_whole(tmp_path / "file" / "below.txt") as draft:
            draft.write_text("")


def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path):
    with pytest.raises(UserError, match="No space left"), written_whole(tmp_path / "a.txt") as draft:
        draft.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error", [ValueError("a\nb"), MemoryError(), RecursionError(), OverflowError(), OSError(5, "x")]
)
def test_whatever_a_library_raises_is_one_sentence(error):
    with pytest.raises(UserError) as said, reading_untrusted("a.bin", "a whole file", "get it again"):
        raise error
    words = {ValueError: "a b", OSError: "x"}.get(type(error), type(error).__name__)
    assert str(said.value) == f"a.bin: expected a whole file, found a broken one ({words}); get it again"
    assert said.value.__cause__ is error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), UserError("a sentence about a.bin")])
def test_what_is_no_fault_of_the_file_goes_through(error):
    with pytest.raises(type(error)) as raised, reading_untrusted("a.bin", "a whole file"):
        raise error
    assert raised.value is error


def test_a_file_that_is_not_there_is_not_called_broken():
    with pytest.raises(UserError, match=r"^there is no file none\.bin; put it there or correct the path"):
        with reading_untrusted("none.bin", "a whole file"):
            Path("none.bin").read_bytes()


def test_sentences_name_the_file_once():
    for said in ("a sentence of ours", "a.bin: a sentence of ours"):
        with (
            pytest.raises(UserError, match=r"^a\.bin: a sentence of ours$"),
            reading_untrusted("a.bin", "a whole file"),
        ):
            raise UserError(said)


def test_long_words_of_a_library_are_cut():
    with pytest.raises(UserError) as said, reading_untrusted("a.bin", "a whole file"):
        raise ValueError("x" * 10_000)
    assert len(str(said.value)) < 400


def test_only_plain_files_of_a_bounded_length_are_read(tmp_path):
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
