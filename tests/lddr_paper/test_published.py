import json

import pytest

from lddr.data.dataset import datasets
from lddr.metrics.metric import SIX_METRICS
from lddr.models import models
from lddr.report.exhibits import Number
from lddr.report.groups import setting_text, unpublished
from lddr_paper.published import (
    DATASETS,
    LOOK_ALIKES,
    METRICS,
    counterpart,
    departures,
    infomec_elsewhere,
    paper_gain,
    paper_metric,
    paper_mig,
    paper_results,
    paper_supervised,
    published_elsewhere,
)


def test_numbers_are_those_of_the_paper():
    assert paper_mig("dvae", "dsprites") == Number(17.4, 13.2, 20.0)
    assert paper_mig("factor-dvae", "mpi3d") == Number(30.5, 26.0, 32.1)
    assert paper_mig("selection", "dsprites") == Number(39.5)
    assert paper_mig("beta-vae", "cars3d") == Number(9.5, 5.6, 11.7, marks="*")
    assert paper_metric("sap", "cars3d") == Number(1.4, 0.8, 2.2)
    assert paper_supervised("factor-dvae", "masked", 1000, "smallnorb") == Number(33.6, 26.8, 37.3)
    assert paper_gain("dvae", "mig", "dsprites") == Number(336)
    assert paper_gain("dvae", "modularity", "mpi3d") == Number(2)
    assert paper_gain("factor-dvae", "mig", "mpi3d") == Number(175)


@pytest.mark.parametrize("dataset", DATASETS.values())
def test_the_papers_tables_agree_with_each_other(dataset):
    assert paper_metric("mig", dataset) == paper_mig("dvae", dataset)


def test_what_the_paper_does_not_say_is_nothing():
    assert paper_mig("beta-vae", "shapes3d") is None  # n. a. in its Table 1
    assert paper_mig("vae", "dsprites") is None
    assert paper_mig("dvae", None) is None
    assert paper_supervised("dvae", "masked", 100, "dsprites") is None
    assert paper_supervised("vae", "bce", 1000, "dsprites") is None
    assert paper_gain("dvae", "dci", "dsprites") is None
    assert counterpart("circles") is None


def test_every_name_in_the_file_is_one_of_ours():
    found = paper_results()
    rows = set(found["mig_median_unsupervised"]) - {"selection"}
    assert {row.replace("_", "-") for row in rows} <= set(models)
    assert set(found["dvae_unregularized_all_metrics"]) == {METRICS.get(name, name) for name in SIX_METRICS}
    assert set(DATASETS) | set(LOOK_ALIKES) <= set(datasets)
    assert set(DATASETS.values()) == set(found["mig_median_unsupervised"]["dvae"])


def test_a_dataset_of_our_own_is_never_the_papers():
    ours = {name for name in datasets if datasets[name].origin == "drawn"}
    assert not ours & set(DATASETS)


def test_the_papers_own_settings_depart_in_nothing(make_run):
    runs = [make_run(model, "dsprites") for model in ("dvae", "factor-vae", "beta-vae", "annealed-vae")]
    runs.append(make_run("dvae", "dsprites", supervision="masked", labels=1000, omega=16))
    assert departures(runs, "mig", {"samples": 10_000, "num_bins": 20}) == {}


@pytest.mark.parametrize(
    ("dataset", "settings", "expected"),
    [
        ("dsprites", {"steps": 1000}, {"†": "steps 1000 instead of 300,000"}),
        ("dsprites", {"steps": 400_000}, {"§": "steps 400,000 instead of 300,000"}),
        ("dsprites", {"precision": "bf16"}, {"§": "precision bf16 instead of fp32"}),
        ("dsprites", {"gamma": 5}, {"§": "gamma 5 is not in its grid"}),
        ("dsprites", {}, {}),
        ("rooms", {"resolution": 64}, {"‡": "rooms is not Shapes3D"}),
        ("rooms", {"width": 8}, {"‡": "rooms is not Shapes3D", "§": "width 8 instead of 32"}),
    ],
)
def test_departures_are_named(make_run, dataset, settings, expected):
    found = departures([make_run("factor-dvae", dataset, **settings)])
    assert {mark: ", ".join(what) for mark, what in found.items()} == expected


def test_the_larger_mpi3d_is_another_dataset(make_run):
    run = make_run("dvae", "mpi3d_toy")
    path = run.folder / "config.json"
    for images, marks in ((1_036_800, ["‡"]), (460_800, [])):
        content = json.loads(path.read_text())
        content["dataset"]["images"] = images
        path.write_text(json.dumps(content))
        assert list(departures([run])) == marks


def test_redrawn_images_are_marked(make_run):
    run = make_run("dvae", "dsprites")
    path = run.folder / "config.json"
    for origin, marks in (("redrawn", ["°"]), ("official file", [])):
        content = json.loads(path.read_text())
        content["dataset"]["origin"] = origin
        path.write_text(json.dumps(content))
        assert list(departures([run])) == marks


def test_metric_settings_are_compared_with_the_published_ones():
    assert unpublished("mig", {"num_bins": 30, "samples": 10_000, "bins": None}) == ["mig.num_bins 30 instead of 20"]
    assert unpublished("dci", {"estimator": "fast"}) == ["dci.estimator fast instead of published"]
    assert unpublished("a metric of tomorrow", {"bins": 1}) == []


def test_numbers_in_words():
    assert [setting_text(value) for value in (300_000, 6000, 1e-4, None, "fp32")] == [
        "300,000",
        "6000",
        "0.0001",
        "64",
        "fp32",
    ]


def test_numbers_are_the_published_ones():
    assert infomec_elsewhere("tripod", "infom", "shapes3d") == Number(91)
    assert infomec_elsewhere("qlae", "infoc", "mpi3d") == Number(43)
    assert infomec_elsewhere("beta-tcvae", "infoe", "shapes3d") == Number(91)
    assert infomec_elsewhere("dvae", "infom", "shapes3d") is None
    assert infomec_elsewhere("tripod", "infom", "dsprites") is None
    assert infomec_elsewhere("tripod", "infom", None) is None


def test_every_name_in_the_file_is_one_of_ours_and_every_number_a_percentage():
    found = published_elsewhere()["infomec"]
    assert found["source"]
    assert found["protocol"]
    for name in found.keys() - {"source", "protocol"}:
        assert name.replace("_", "-") in models
        for dataset, parts in found[name].items():
            assert dataset in DATASETS.values()
            assert set(parts) == {"infom", "infoc", "infoe"}
            assert all(0 < value < 100 for value in parts.values())
