import errno

import pytest

from lddr.errors import UserError
from lddr.files import written_whole


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
