from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lddr.data.columns import columns_of_csv
from lddr.errors import UserError

FILES = ["img_000.png", "img_001.png", "img_002.png", "sub/img_003.webp"]


def read(folder, text, files=FILES, encoding="utf-8"):
    (folder / "factors.csv").write_bytes(text.encode(encoding))
    return {name: column.tolist() for name, column in columns_of_csv(folder / "factors.csv", files).items()}


@pytest.mark.parametrize("heading", ["Filename", "name", "id", "Bild", "IMAGE", "file"])
@pytest.mark.parametrize(
    "way",
    [
        lambda file: file,
        lambda file: file.rsplit("/")[-1],
        lambda file: file.rsplit(".")[0],
        lambda file: file.rsplit("/")[-1].rsplit(".")[0],
        lambda file: file.rsplit("/")[-1].upper(),
        lambda file: "./" + file,
        lambda file: file.replace("/", "\\"),
    ],
)
def test_rows_go_to_the_images_they_name_whatever_the_column_is_called(tmp_path, heading, way):
    rows = [f"{number},{way(FILES[number])}" for number in (2, 0, 3, 1)]
    assert read(tmp_path, "\n".join([f"x,{heading}", *rows])) == {"x": [0, 1, 2, 3]}


@given(
    order=st.permutations(range(12)), prefix=st.sampled_from(["", "pic"]), padding=st.integers(1, 4), cut=st.booleans()
)
def test_no_order_of_the_rows_matters(tmp_path_factory, order, prefix, padding, cut):
    files = [f"{prefix}{number:0{padding}}.png" for number in range(12)]
    keys = list(range(12)) if cut else [file.removesuffix(".png") for file in files]
    rows = [f"{keys[number]},{number % 5},{'ab'[number % 2]}" for number in order]
    columns = read(tmp_path_factory.mktemp("table"), "\n".join(["key,size,kind", *rows]), files)
    assert columns == {"size": [number % 5 for number in range(12)], "kind": ["ab"[number % 2] for number in range(12)]}


def test_numbers_that_repeat_are_a_factor_even_where_files_have_such_names(tmp_path):
    files = [f"{number}.png" for number in range(4)]
    assert read(tmp_path, "x\n0\n1\n1\n0\n", files) == {"x": [0, 1, 1, 0]}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_separators_and_encodings_of_all_usual_programs(tmp_path, separator, ending, encoding):
    rows = [["größe", "farbe"], ["1.5", "grün"], ["2", "weiß"], ["1.5", "grün"], ["2", "grün"]]
    text = ending.join(separator.join(row) for row in rows) + ending
    assert read(tmp_path, text, encoding=encoding) == {
        "größe": [1.5, 2, 1.5, 2],
        "farbe": ["grün", "weiß", "grün", "grün"],
    }


def test_decimal_commas_between_semicolons(tmp_path):
    assert read(tmp_path, "x;y\n1,5;a\n2,25;b\n1,5;a\n2,25;b\n") == {"x": [1.5, 2.25, 1.5, 2.25], "y": list("abab")}


def test_separators_inside_quotes(tmp_path):
    text = 'x,"y;z"\n1,"a;b"\n2,"a;b"\n1,"c;d"\n2,"c;d"\n'
    assert read(tmp_path, text) == {"x": [1, 2, 1, 2], "y;z": ["a;b", "a;b", "c;d", "c;d"]}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x,who\n1,ann\n2,bob\n1,eve\n2,joe\n", "'who' is different in every row and names no images"),
        ("a;b,c\n1;2,3\n1;2,3\n1;2,3\n1;2,3\n", "commas or semicolons"),
        ("name,x\nimg_000,1\nimg_001,2\nimg_002,3\nimg_003,4\nimg_9,5\n", "not in the folder: img_9"),
        ("name,x\nimg_000,1\nimg_001,2\nimg_002,3\nimg_003,4\nimg_003,5\n", "2 rows for sub/img_003.webp"),
        ("file,x\nup,1\ndown,2\nleft,3\nright,4\n", "not in the folder: down and 3 others"),
        ("file,x\nimg_000,1\n,2\n", "row 3: the cell of 'file' names no image"),
        ("file,x\n", "has no rows"),
        (
            "a,b,x\nimg_000,img_001,1\nimg_001,img_000,2\nimg_002,img_002,3\nimg_003,img_003,4\n",
            "'a' and 'b' name different images",
        ),
        ("x\n1\n2\n", "has 2 rows but the folder has 4 images"),
        ("x,\n1,2\n1,2\n1,2\n1,2\n", "distinct column names"),
        ('x,y\n1,"2\n', "quoted cell without an end"),
    ],
)
def test_what_stays_unclear_is_refused(tmp_path, text, sentence):
    with pytest.raises(UserError, match=sentence):
        read(tmp_path, text)


def test_images_without_a_row_and_blank_cells_are_unknown(tmp_path):
    text = "file,x,shape,y\nimg_003,4,,0.5\nimg_000,,box,NA\nimg_001,2,ball,nan\n"
    columns = read(tmp_path, text)
    assert columns["shape"] == ["box", "ball", "", ""]
    assert np.array_equal(columns["x"], [np.nan, 2, np.nan, 4], equal_nan=True)
    assert np.array_equal(columns["y"], [np.nan, np.nan, np.nan, 0.5], equal_nan=True)


def test_blank_cells_need_no_names_where_every_image_has_a_row(tmp_path):
    columns = read(tmp_path, "x;y\n1,5;\n;b\n2;b\n2;a\n")
    assert np.array_equal(columns["x"], [1.5, np.nan, 2, 2], equal_nan=True)
    assert columns["y"] == ["", "b", "b", "a"]


def test_a_few_numbers_are_names_under_a_heading_that_says_so(tmp_path):
    files = [f"{number:03}.png" for number in range(100)]
    x = np.array(read(tmp_path, "image,x\n007,3\n093,4\n012,3\n", files)["x"])
    assert np.flatnonzero(~np.isnan(x)).tolist() == [7, 12, 93]
    assert x[[7, 12, 93]].tolist() == [3, 3, 4]


def test_one_label_of_each_word_is_a_factor_where_others_are_unknown(tmp_path):
    assert read(tmp_path, "file,shape\nimg_000,box\nimg_002,ball\n") == {"shape": ["box", "", "ball", ""]}


@given(content=st.binary(max_size=60) | st.text(alphabet='a1,;\t"\n\r\0é', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused_with_a_sentence(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("table") / "factors.csv"
    path.write_bytes(content)
    with suppress(UserError):
        columns = columns_of_csv(path, ["a.png", "b.png"])
        assert all(column.shape == (2,) and column.dtype.kind in "fU" for column in columns.values())
        assert not any(np.isinf(column).any() for column in columns.values() if column.dtype.kind == "f")


@pytest.mark.parametrize(
    "table", ["file,{long}\na.png,1\nb.png\n", "file,size\na.png,{long},2\nb.png,1\n", "size\n{long}\n"]
)
def test_long_cells_do_not_make_long_sentences(tmp_path, table):
    path = tmp_path / "factors.csv"
    path.write_text(table.replace("{long}", "x" * 50_000))
    with pytest.raises(UserError) as said:
        columns_of_csv(path, ["a.png", "b.png"])
    assert len(str(said.value)) < 1500
