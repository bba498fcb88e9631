from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from lddr.latents import latents
from lddr.latents.categorical import Categorical
from lddr.latents.gaussian import Gaussian
from lddr.models import models
from lddr.objectives import objectives
from lddr.objectives.elbo import Elbo
from lddr.report.style import DARK, LIGHT, MARKERS, colour, goals, hatch, house_place, is_discrete, marker

# Linear RGB as people without the cones for red (protan), green (deutan) or blue (tritan) light see it: Viénot,
# Brettel & Mollon 1999 for the first two, and a common linear map for the third.
LESS_COLOUR = {
    "protan": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
    "deutan": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
    "tritan": [[1, 0.14461, -0.14461], [0, 0.85924, 0.14076], [0, 0.85924, 0.14076]],
}


def lightness(colour: np.ndarray) -> float:
    """CIE L* of linear RGB."""
    luminance = float(np.array([0.2126, 0.7152, 0.0722]) @ colour)
    return 116 * np.cbrt(luminance) - 16


def linear(colour: str) -> np.ndarray:
    values = np.array(to_rgb(colour))
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


@pytest.fixture
def strangers(monkeypatch):
    """Two more families, one of each kind, and nine more objectives: the names of all points of the grid."""
    for registry in (latents, objectives):
        list(registry)  # filled
        monkeypatch.setattr(registry, "_things", dict(registry._things))
    for name, base in (("ladder", Categorical), ("laplace", Gaussian)):
        monkeypatch.setitem(latents._things, name, type(name, (base,), {"name": name}))
    for number in range(9):
        monkeypatch.setitem(objectives._things, f"a-{number}", type(f"A{number}", (Elbo,), {"name": f"a-{number}"}))
    return [models.name_of(family, goal) for family in latents for goal in objectives]


def test_models_look_as_they_always_did():
    names = ["vae", "beta-vae", "annealed-vae", "factor-vae", "beta-tcvae", "dip-vae-i", "dip-vae-ii"]
    assert [colour(name) for name in names] == list(DARK)
    names += ["dvae", "beta-dvae", "annealed-dvae", "factor-dvae", "tc-dvae", "dip-dvae-i", "dip-dvae-ii"]
    assert [colour(name) for name in names[7:]] == list(LIGHT)
    assert [marker(name) for name in names] == 2 * list(MARKERS[:7])
    names += ["qvae", "factor-qvae", "fsq-ae", "tripod", "qlae", "vq-vae", "one-hot-vae"]  # what came later
    names.insert(7, "von-mises-vae")
    assert sorted(models, key=house_place) == names


def test_a_new_family_or_objective_has_looks_of_its_own_and_changes_no_others(strangers):
    assert len({colour(name) for name in strangers}) == len(strangers) == len(latents) * len(objectives)
    assert colour("factor-dvae") == "#f29cc0"
    assert colour("beta-vae") == "#332288"
    assert len({marker(models.name_of("ladder", goal)) for goal in goals()[:15]}) == 15
    assert house_place("dip-vae-ii") < house_place("laplace+elbo") < house_place("dvae") < house_place("ladder+elbo")


def test_what_this_version_does_not_know_comes_last():
    assert colour("mine") == "#222222"
    assert max([*models, "mine"], key=house_place) == "mine"


def test_in_grey_every_gaussian_model_is_darker_than_every_discrete_one(strangers):
    grey = {name: lightness(linear(colour(name))) for name in strangers}
    dark = [value for name, value in grey.items() if not is_discrete(name)]
    light = [value for name, value in grey.items() if is_discrete(name)]
    assert max(dark) + 15 < min(light)


@pytest.mark.parametrize("kind", LESS_COLOUR)
def test_the_families_differ_for_people_who_see_fewer_colours(kind):
    seen = {name: np.array(LESS_COLOUR[kind]) @ linear(colour(name)) for name in models}
    for objective in objectives:
        same = [name for name in models if models[name].objective == objective]
        light = {name: lightness(seen[name].clip(0, 1)) for name in same}
        for one, other in combinations(same, 2):
            assert is_discrete(one) == is_discrete(other) or abs(light[one] - light[other]) > 15, (one, other)


def test_supervisions_of_a_family_have_hatches():
    hatches = [hatch("vae", "bce"), hatch("vae", "l2"), hatch("dvae", "cross-entropy"), hatch("dvae", "masked")]
    assert hatches == ["", "....", "", "////"]
