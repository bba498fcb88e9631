import json

import pytest

from lddr.metrics.metric import UndefinedError
from lddr.runs.information import information_of

SETTINGS = {"model": "dvae", "dataset": "own", "training": {"steps": 5000, "seed": 0}}


def write(folder, mig=None, factors=("shape", "x")):
    config = {"settings": SETTINGS, "dataset": {"factors": dict.fromkeys(factors, 4)}}
    (folder / "config.json").write_text(json.dumps(config))
    metrics = {} if mig is None else {"mig": mig}
    (folder / "scores.json").write_text(json.dumps({"training": {"elbo": -3.0}, "metrics": metrics}))
    return folder


MIG = {
    "score": 0.4,
    "mutual_information": [[0.1, 1.0], [0.6, 0.2], [0.0, 0.01]],
    "entropies": [1.0, 2.0],
    "settings": {},
}


def test_a_latent_is_called_after_the_factor_of_which_it_tells_the_largest_share(tmp_path):
    found = information_of(write(tmp_path, MIG))
    assert found.label(0) == ("x", 0.5)
    assert found.label(1) == ("shape", 0.6)
    assert found.label(2) is None


def test_factors_that_were_left_out_have_no_column(tmp_path):
    mig = MIG | {"factors_left_out": {"size": "continuous"}}
    assert information_of(write(tmp_path, mig, ("shape", "size", "x"))).factors == ["shape", "x"]


def test_a_factor_that_never_changes_names_nothing(tmp_path):
    found = information_of(write(tmp_path, MIG | {"entropies": [0.4, 0.0]}))
    assert found.label(0) == ("shape", pytest.approx(0.25))


@pytest.mark.parametrize(("share", "label"), [(0.19, None), (0.21, ("shape", 0.21))])
def test_a_latent_that_tells_little_is_called_after_nothing(tmp_path, share, label):
    found = information_of(write(tmp_path, MIG | {"mutual_information": [[share, 0.0]], "entropies": [1.0, 2.0]}))
    assert found.label(0) == label


@pytest.mark.parametrize(
    "mig",
    [
        None,
        {"score": None, "reason": "no factors"},
        MIG | {"entropies": [1.0]},
        MIG | {"mutual_information": [1.0, 2.0]},
        MIG | {"mutual_information": "many"},
        MIG | {"mutual_information": [[1.0], [1.0, 2.0]]},
        [],
    ],
    ids=str,
)
def test_what_does_not_fit_is_no_information(tmp_path, mig):
    with pytest.raises(UndefinedError, match="has no mutual information with factors"):
        information_of(write(tmp_path, mig))


@pytest.mark.parametrize("name", ["config.json", "scores.json"])
@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"metrics": 3, "dataset": 4}'])
def test_damaged_files_are_no_information(tmp_path, name, content):
    path = write(tmp_path, MIG) / name
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(UndefinedError, match="get it with: lddr evaluate RUN --metrics mig"):
        information_of(tmp_path)


def test_images_without_factors_need_no_advice(tmp_path):
    with pytest.raises(UndefinedError, match="its images have no factors") as caught:
        information_of(write(tmp_path, factors=()))
    assert "lddr evaluate" not in str(caught.value)
