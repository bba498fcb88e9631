"""Parts declare their settings in their constructors; lddr's own are described in a file, and not imported."""

import copy
import pickle
import subprocess
import sys
from dataclasses import replace
from typing import Annotated, Literal

import pytest
import torch
from torch import nn

import lddr
from lddr.config import Config, all_settings, configure
from lddr.errors import UserError
from lddr.latents import latents
from lddr.latents.categorical import Categorical
from lddr.likelihoods import likelihoods
from lddr.metrics.metric import metric, metric_rules, metrics
from lddr.networks import build, decoders, encoders
from lddr.objectives import objectives
from lddr.parts import DESCRIPTIONS, Choice, Part, Parts, inspected
from lddr.settings import Rule, Setting
from tools import part_descriptions

REGISTRIES = (latents, objectives, likelihoods, encoders, decoders)
PARTS = {f"{registry.kind} {name}": registry[name] for registry in REGISTRIES for name in registry}
CHOICES = {title: part for title, part in PARTS.items() if part.kind in ("latent", "objective", "likelihood")}


def part_of(name):
    return pytest.mark.parametrize("part", name.values(), ids=name)


def pickled(thing):
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 (our own bytes)


@part_of(PARTS)
def test_the_description_of_a_part_is_what_inspection_finds(part):
    found = inspected(part.kind, part.name, part.cls)
    assert list(found.rules.items()) == list(part.rules.items())
    assert (found.module, found.class_name) == (part.module, part.class_name)
    own = {name: value for name, value in found.constants.items() if name != "name" and not hasattr(nn.Module, name)}
    assert own == part.constants


@part_of(PARTS)
def test_a_part_names_its_class(part):
    assert part.cls.name == part.name
    assert issubclass(part.cls, nn.Module)
    assert part.cls.__doc__


@part_of(CHOICES)
def test_a_choice_builds_the_module_with_its_settings(part):
    module = part().build()
    assert type(module) is part.cls
    assert module.settings == {name: rule.default for name, rule in part.rules.items()}
    assert type(part.cls()) is part.cls  # all settings have defaults
    assert all(rule.help.endswith(".") for rule in part.rules.values())
    assert set(part.rules) <= set(all_settings())


@part_of(CHOICES)
def test_choices_are_equal_hashable_and_can_be_pickled_and_copied(part):
    one, same = part(), part(**{name: rule.default for name, rule in part.rules.items()})
    assert one == same
    assert hash(one) == hash(same)
    assert len({one, same}) == 1
    for other in (pickled(one), copy.copy(one), copy.deepcopy(one)):
        assert (other, hash(other), repr(other)) == (one, hash(one), repr(one))
        assert other.part == part
    assert one != part.name


def test_choices_with_other_settings_or_of_other_parts_differ():
    three = latents["categorical"](num_latents=3)
    assert three != latents["categorical"](num_latents=4)
    assert three != latents["codebook"](num_latents=3)
    assert latents["gaussian"]() != likelihoods["gaussian"]()
    assert three == latents["categorical"](num_latents="3")  # in the setting's own type


def test_a_whole_config_can_be_pickled():
    config = configure("factor-dvae", "circles", supervision="masked", labels=20, likelihood="laplace", scale=0.2)
    assert pickled(config) == config
    assert hash(pickled(config)) == hash(config)
    assert Config.from_dict(config.as_dict()) == config


def test_the_settings_and_constants_of_a_choice_are_its_attributes():
    choice = latents["categorical"](num_categories=5)
    assert (choice.name, choice.num_latents, choice.num_categories) == ("categorical", 10, 5)
    assert (choice.title, choice.is_discrete, choice.masking) == ("categorical", True, ("masked",))
    assert choice.changed(num_latents=2) == latents["categorical"](num_categories=5, num_latents=2)
    assert choice.as_dict()["name"] == "categorical"
    assert repr(choice).startswith("categorical(num_latents=10, num_categories=5, low=-1.0")
    with pytest.raises(AttributeError, match="the latent 'categorical' has no constant 'sharpness'"):
        _ = choice.sharpness
    with pytest.raises(TypeError, match="the latent 'categorical' has no setting 'sharpness'"):
        latents["categorical"](sharpness=1)


WRONG = [
    ("latent", "categorical", {"num_latents": 0}, "num_latents must be at least 1, not 0"),
    ("latent", "categorical", {"num_categories": 1.5}, "num_categories must be a whole number, not 1.5"),
    ("latent", "codebook", {"sharpness": 0}, "sharpness must be more than 0, not 0.0"),
    ("latent", "fsq", {"bound": "both"}, "bound must be one of symmetric, shifted, sigmoid, not 'both'"),
    ("objective", "beta", {"beta": -1}, "beta must be at least 0, not -1.0"),
    ("objective", "factor", {"discriminator_beta1": 1}, "discriminator_beta1 must be at most 0.9999, not 1.0"),
    ("likelihood", "gaussian", {"learn_scale": "perhaps"}, "learn_scale must be true or false, not 'perhaps'"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "settings", "sentence"), WRONG)
def test_values_out_of_range_are_refused_by_choices_and_constructors_alike(kind, name, settings, sentence):
    part = PARTS[f"{kind} {name}"]
    for make in (part, part.cls):
        with pytest.raises(UserError) as error:
            make(**settings)
        assert str(error.value) == sentence


def test_settings_may_be_given_in_order_and_are_converted():
    latent = Categorical("3", 8.0)
    assert (latent.num_latents, latent.num_categories) == (3, 8)
    assert latent.settings["num_categories"] == 8
    assert type(latent.settings["num_categories"]) is int
    with pytest.raises(TypeError):
        Categorical(sharpness=3)


def test_classes_are_found_in_their_package():
    assert lddr.latents.Categorical is Categorical
    assert lddr.objectives.Beta(beta=2).beta == 2
    assert lddr.likelihoods.Bernoulli.name == "bernoulli"
    with pytest.raises(AttributeError, match=r"module 'lddr.latents' has no attribute 'Nonsense'"):
        _ = lddr.latents.Nonsense


def test_a_part_of_a_plugin_is_inspected():
    registry = Parts("gadget", "lddr.likelihoods")  # nothing there is registered as a gadget

    class Base(nn.Module):
        colour = "red"

        def __init__(self, size: int) -> None:
            super().__init__()
            self.size = size

    @registry.register("lamp")
    class Lamp(Base):
        """Shines."""

        title = "Lamp"

        def __init__(
            self,
            lamp_size: Annotated[int, Setting("How large.", at_least=1)] = 3,
            lamp_mode: Annotated[Literal["dim", "bright"], Setting("How bright.")] = "dim",
            wires: int = 2,
        ) -> None:
            super().__init__(lamp_size)
            self.mode, self.wires = lamp_mode, wires

    part = registry["lamp"]
    assert isinstance(part, Part)
    assert part.rules == {
        "lamp_size": Rule(3, "How large.", int, at_least=1),
        "lamp_mode": Rule("dim", "How bright.", str, choices=("dim", "bright")),
    }
    assert (part.title, part.colour) == ("Lamp", "red")
    assert Lamp.name == "lamp"
    assert isinstance(part(lamp_size=4), Choice)
    lamp = Lamp("4", wires=5)
    assert (lamp.size, lamp.mode, lamp.wires) == (4, "dim", 5)
    assert lamp.settings == {"lamp_size": 4, "lamp_mode": "dim"}
    with pytest.raises(UserError, match="lamp_size must be at least 1, not 0"):
        Lamp(0)
    with pytest.raises(ValueError, match="two gadgets are called 'lamp'"):
        registry.register("lamp")(Lamp)


def test_a_setting_of_a_plugin_cannot_take_a_name_that_is_in_use():
    registry = Parts("gizmo", "lddr.likelihoods")
    assert "num_latents" in all_settings()

    class Clash(nn.Module):
        def __init__(self, num_latents: Annotated[int, Setting("Not of a latent.")] = 3) -> None:
            super().__init__()

    with pytest.raises(ValueError, match=r"the setting 'num_latents' of .*Clash is taken by latent \(int\)"):
        registry.register("clash")(Clash)


class NoSetting(nn.Module):
    def __init__(self, num_latents: int = 3) -> None: ...


class NoDefault(nn.Module):
    def __init__(self, depth_of_it: Annotated[int, Setting("How deep.", at_least=1)]) -> None: ...


class OddType(nn.Module):
    def __init__(self, shades: Annotated[list, Setting("Which.")] = ()) -> None: ...


class OddDefault(nn.Module):
    def __init__(self, depth_of_it: Annotated[int, Setting("How deep.", at_least=1)] = 0) -> None: ...


class NoName(nn.Module):
    def __init__(self, depth_of_it: "Anotated[int]" = 1) -> None: ...  # noqa: F821


MISTAKES = [
    ("latent", NoSetting, "its constructor has no setting num_latents; declare it: num_latents: Annotated[int, "),
    ("objective", NoDefault, "its constructor must take only parameters with a default, but has depth_of_it"),
    ("likelihood", OddType, "shades must be annotated as int, float, bool, str, tuple[int, ...] or Literal, not "),
    ("objective", OddDefault, "the default of depth_of_it must be at least 1, not 0"),
    ("objective", NoName, "annotation in the constructor of NoName cannot be read: name 'Anotated' is not defined"),
    ("encoder", NoSetting, "must take image_shape and outputs first, and only parameters with a default, but has no"),
]


@pytest.mark.parametrize(("kind", "cls", "sentence"), MISTAKES, ids=[cls.__name__ for _, cls, _ in MISTAKES])
def test_a_mistake_in_the_constructor_of_a_plugin_is_one_sentence(kind, cls, sentence):
    with pytest.raises(UserError) as error:
        Parts(kind, "lddr.likelihoods").register("mine")(cls)
    assert sentence in str(error.value)
    assert cls.__name__ in str(error.value)


def test_mistakes_in_the_metric_of_a_plugin_are_sentences():
    def rank(codes, top: int = 3, share: Annotated[float, Setting("Of the codes.", above=0)] = 0.5): ...

    for wrong, sentence in ({"top": 0}, "at least 1, not 0"), ({"share": 0}, "more than 0, not 0.0"):
        ((name, value),) = wrong.items()
        with pytest.raises(UserError, match=f"{name} must be {sentence}"):
            metric_rules(rank)[name].fitting(name, value)
    with pytest.raises(
        UserError, match="the metric 'rank' has the inputs kodes; name them codes, factors or after its"
    ):
        metric("rank", "Rank", parts={"samples": 10})(lambda kodes: None)
    with pytest.raises(UserError, match=r"the metric 'mig' must return a Result, not 0\.5"):
        replace(metrics["mig"], function=lambda codes, factors: 0.5).compute([None, None])


def test_classes_are_inspected_with_base_classes_and_keyword_only_settings():
    registry = Parts("thing", "lddr.likelihoods")  # nothing there is registered as a thing

    class Base:
        colour = "red"
        size: int = 3
        made = object()

        def __init__(self, reach: Annotated[float, Setting("How far.", above=0)] = 1.5) -> None: ...

    @registry.register("second")
    class Second(Base):
        size = 4

    @registry.register("fourth")
    class Fourth(Base):
        def __init__(self, other=3, *, immersion: Annotated[int, Setting("How deep.")] = 2) -> None: ...

    second, fourth = (registry[name] for name in registry.registered())
    assert (second.name, second.module, second.class_name) == ("second", __name__, Second.__qualname__)
    assert second.rules == {"reach": Rule(1.5, "How far.", float, above=0)}
    assert second.constants == {"name": "second", "colour": "red", "size": 4}
    assert fourth.rules == {"immersion": Rule(2, "How deep.", int)}
    assert fourth.constants == {"name": "fourth", "colour": "red", "size": 3}


def test_the_descriptions_of_parts_are_current():
    assert part_descriptions.text() == DESCRIPTIONS.read_text("utf-8"), "run: make pages"


def test_a_class_that_has_changed_since_its_description_is_a_sentence():
    with pytest.raises(UserError, match=r"the settings of Gaussian have changed since parts\.json; run: make pages"):
        _ = replace(latents["gaussian"], rules={}).cls


def test_networks_get_the_settings_that_their_constructors_name():
    encoder = build(encoders["convolution"], (16, 16, 1), 6, width=4, kernels=(4, 4), depth=9)
    assert encoder(torch.zeros(2, 1, 16, 16)).shape == (2, 6)


LIST = """
import sys
from lddr.cli import main
from lddr.config import all_settings, configure
main(["models"])
main(["models", "--markdown"])
all_settings()
configure("factor-dvae", "circles", gamma=3, likelihood="laplace").run_name
print(sorted({"torch", "lddr.vae", "lddr.latents.latent", "lddr.objectives.objective"} & set(sys.modules)))
"""


def test_parts_are_listed_and_configured_without_importing_torch():
    run = subprocess.run([sys.executable, "-c", LIST], capture_output=True, text=True, check=True)
    *shown, last = run.stdout.splitlines()
    assert last == "[]"
    assert any("tc-dvae" in line for line in shown)
