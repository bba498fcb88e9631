from lddr.models import models
from lddr.report.exhibits import Number
from lddr_paper.published import DATASETS, others_infomec, others_results


def test_numbers_are_the_published_ones():
    assert others_infomec("tripod", "infom", "shapes3d") == Number(91)
    assert others_infomec("qlae", "infoc", "mpi3d") == Number(43)
    assert others_infomec("beta-tcvae", "infoe", "shapes3d") == Number(91)
    assert others_infomec("dvae", "infom", "shapes3d") is None
    assert others_infomec("tripod", "infom", "dsprites") is None
    assert others_infomec("tripod", "infom", None) is None


def test_every_name_in_the_file_is_one_of_ours_and_every_number_a_percentage():
    found = others_results()["infomec"]
    assert found["source"]
    assert found["protocol"]
    for name in found.keys() - {"source", "protocol"}:
        assert name.replace("_", "-") in models
        for dataset, parts in found[name].items():
            assert dataset in DATASETS.values()
            assert set(parts) == {"infom", "infoc", "infoe"}
            assert all(0 < value < 100 for value in parts.values())
