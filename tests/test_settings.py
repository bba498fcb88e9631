from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lddr.cli import main
from lddr.config import all_settings, configure, settings_of
from lddr.errors import UserError
from lddr.models import models
from lddr.settings import Rule, Settings, claim, rules_of, setting, shared_settings
from lddr.sweeps.study import read_study


@dataclass(frozen=True)
class Oven(Settings):
    heat: float = setting(180.0, "Degrees.", above=0, at_most=300)
    minutes: int = setting(30, "How long.", at_least=1)
    mode: str = setting("fan", "How.", choices=("fan", "grill"))
    racks: tuple[int, ...] = setting((1, 2), "Where.", at_least=1)
    shelf: int | None = setting(None, "Which.", kind=int, at_least=0)
    draught: float = setting(0.0, "How strong.")


def test_values_come_in_their_own_type():
    oven = Oven(heat="2e2", minutes=45.0, racks=[3, "4"], shelf="2")
    assert oven == Oven(200.0, 45, "fan", (3, 4), 2)
    assert [type(value) for value in (oven.heat, oven.minutes, oven.racks)] == [float, int, tuple]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"heat": 0}, "heat must be more than 0, not 0.0"),
        ({"heat": 301}, "heat must be at most 300, not 301.0"),
        ({"heat": float("nan")}, "heat must be a number, not nan"),
        ({"heat": "inf"}, "heat must be a number, not 'inf'"),
        ({"heat": True}, "heat must be a number, not True"),
        ({"draught": -1e300}, "draught must be a number up to 1e+30 in size, not -1e+300"),
        ({"minutes": 0}, "minutes must be at least 1, not 0"),
        ({"minutes": 1.5}, "minutes must be a whole number, not 1.5"),
        ({"minutes": "1.5"}, "minutes must be a whole number, not '1.5'"),
        ({"minutes": None}, "minutes must be a whole number, not None"),
        ({"mode": "gril"}, "mode must be one of fan, grill, not 'gril'; did you mean 'grill'?"),
        ({"racks": "1;2"}, "racks must be a list of whole numbers, not '1;2'"),
        ({"racks": (1, 0)}, "racks must be at least 1, not 0"),
    ],
)
def test_other_values_are_refused_with_a_sentence(wrong, sentence):
    with pytest.raises(UserError) as error:
        Oven(**wrong)
    assert str(error.value) == sentence


@given(st.floats(0.01, 300), st.integers(1, 10**15))
def test_a_value_survives_being_written_and_read(heat, minutes):
    assert Oven(repr(heat), str(minutes)) == Oven(heat, minutes)


@pytest.mark.parametrize("nothing", [(), []])
def test_a_list_may_be_empty_only_by_default(nothing):
    assert Rule((), "Which.", tuple).fitting("shelves", nothing) == ()
    with pytest.raises(UserError, match="racks must be a list of whole numbers"):
        Oven(racks=nothing)


def test_a_name_belongs_to_one_part():
    rules = {f"oven_{name}": rule for name, rule in rules_of(Oven).items()}  # no names of lddr's
    claim("kitchen", "Oven", rules)
    claim("kitchen", "Stove", rules)  # the same name, type and part
    with pytest.raises(ValueError, match=r"'oven_heat' of Car is taken by kitchen \(float\)"):
        claim("garage", "Car", rules)
    with pytest.raises(ValueError, match=r"'oven_minutes' of Clock is taken by kitchen \(int\)"):
        claim("kitchen", "Clock", {"oven_minutes": rules["oven_heat"]})
    with pytest.raises(ValueError, match="'model' of Shop is taken by the command line"):
        claim("shop", "Shop", {"model": rules["oven_mode"]})


def test_owners_with_different_rules_are_named():
    @dataclass(frozen=True)
    class Stove(Settings):
        heat: float = setting(9.0, "Level.")

    heat = shared_settings([("oven", Oven), ("stove", Stove)])["heat"]
    assert heat.help == "Degrees (oven). Level (stove)."
    assert heat.default == "180 (oven), 9 (stove)"


def test_every_setting_of_every_model_is_described():
    for model in models:
        point = models[model]
        assert set(settings_of(model)) >= set(rules_of(point.family)) | set(rules_of(point.goal))
        assert set(settings_of(model)) <= set(all_settings())
    assert all(each.help.endswith(".") for each in all_settings().values())


WRONG = [
    ("seed", -1, "seed must be at least 0, not -1"),
    ("steps", -5, "steps must be at least 1, not -5"),
    ("steps", 0, "steps must be at least 1, not 0"),
    ("batch_size", 0, "batch_size must be at least 1, not 0"),
    ("learning_rate", -1, "learning_rate must be more than 0, not -1.0"),
    ("learning_rate", float("nan"), "learning_rate must be a number, not"),
    ("num_latents", 0, "num_latents must be at least 1, not 0"),
    ("num_categories", 1, "num_categories must be at least 2, not 1"),
    ("noise_end", -1, "noise_end must be at least 0, not -1.0"),
    ("width", 0, "width must be at least 1, not 0"),
    ("precision", "fp8", "precision must be one of fp32, bf16, not 'fp8'"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), WRONG)
def test_a_wrong_value_is_the_same_sentence_everywhere_and_leaves_nothing(name, value, sentence, tmp_path, capsys):
    with pytest.raises(UserError, match=sentence):
        configure("dvae", "circles", **{name: value})
    flag = f"--{name.replace('_', '-')}={value}"
    with pytest.raises(SystemExit) as end:
        main(["train", "--dataset", "circles", flag, "--out", str(tmp_path / "runs")])
    assert end.value.code == 2
    assert sentence in capsys.readouterr().err
    study = tmp_path / "study.toml"
    written = repr(value).replace("'", '"')
    study.write_text(f'name = "x"\n[[blocks]]\nmodel = "dvae"\ndataset = "circles"\n{name} = {written}\n')
    with pytest.raises(UserError, match=f"block 1 {sentence}"):
        read_study(study)
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]


def test_numbers_may_be_written_as_people_write_them(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("lddr.runs.run.run", lambda config, out, machine, images=None: seen.append(config))
    main(["train", "--dataset", "circles", "--steps", "1e3", "--learning-rate", "3e-4", "--kernels", "4,4,2,2"])
    assert seen == [configure("dvae", "circles", "quick", steps=1000, learning_rate=3e-4, kernels=(4, 4, 2, 2))]


@pytest.mark.parametrize("value", ["²", "9" * 5000, "--3", "+"])
def test_digits_that_are_no_number_are_refused(value):
    with pytest.raises(UserError, match="minutes must be a whole number"):
        Oven(minutes=value)
