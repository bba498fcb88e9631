"""The looks and the place of every model, from its latent family and its objective.

Continuous families have dark, cool colours and discrete ones light, warm colours, so that the two can be told apart in
grey and by everyone; the objective decides the hue and the marker, the supervision the hatch. What is registered later
comes later, and changes nothing of what was there.
"""

from collections.abc import Iterable

import numpy as np

from lddr.latents import latents
from lddr.models import models
from lddr.objectives import objectives
from lddr.report.style import INK

# of the objectives in the order in which models have names: elbo, beta, annealed, factor, tc, dip-i, dip-ii
DARK = ("#0072b2", "#332288", "#117733", "#882255", "#00686e", "#5f5f26", "#444444")
LIGHT = ("#e69f00", "#ee8866", "#d9c93f", "#f29cc0", "#cfae82", "#b5cc66", "#bbbbbb")
MARKERS = "os^DvPX<>ph*d8H"
HATCHES = ("", "....", "xxxx", "++++")
MASKED = "////"
LUMINANCE, GAMMA, GOLDEN = (0.2126, 0.7152, 0.0722), 2.2, 0.381966  # of red, green and blue; of screens; part of a turn


def families(discrete: bool) -> list[str]:
    """The continuous or the discrete latent families in the order of the house."""
    named = _first_named((models[name].latent for name in models.registered()), latents)
    return [name for name in named if latents[name].is_discrete == discrete]


def goals() -> list[str]:
    """The objectives in the order of the house."""
    return _first_named((models[name].objective for name in models.registered()), objectives)


def _first_named(named: Iterable[str], known: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*named, *known]))


def is_discrete(model: str) -> bool:
    return model in models and models[model].family.is_discrete


def house_place(model: str) -> tuple[bool, int, int]:
    """By which models are sorted: continuous before discrete ones, by family, by objective; strangers last."""
    if model not in models:
        return True, len(latents), len(objectives)
    discrete = is_discrete(model)
    return discrete, families(discrete).index(models[model].latent), goals().index(models[model].objective)


def colour(model: str) -> str:
    """The same everywhere."""
    if model not in models:
        return INK
    discrete, family, goal = house_place(model)
    palette = LIGHT if discrete else DARK
    return _turned(palette[goal % len(palette)], family + len(palette) * (goal // len(palette)))


def _turned(shown: str, turns: int) -> str:
    """The colour with another hue that is as light."""
    from colorsys import hls_to_rgb, rgb_to_hls

    from matplotlib.colors import to_hex, to_rgb

    if turns == 0:
        return shown
    hue, lightness, saturation = rgb_to_hls(*to_rgb(shown))
    other = np.array(hls_to_rgb((hue + turns * GOLDEN) % 1, lightness, max(saturation, 0.4))) ** GAMMA
    wanted, has = (float(light @ LUMINANCE) for light in (np.array(to_rgb(shown)) ** GAMMA, other))
    mixed = other * wanted / has if has > wanted else other + (1 - other) * (wanted - has) / (1 - has)
    red, green, blue = mixed ** (1 / GAMMA)
    return to_hex((red, green, blue))


def marker(model: str) -> str:
    """The objective's."""
    return MARKERS[house_place(model)[2] % len(MARKERS)]


def hatch(model: str, loss: str) -> str:
    """The supervision's; the usual one of a family has none."""
    if model not in models or loss in models[model].family.masking:
        return MASKED
    others = [name for name in models[model].family.supervisions if name not in models[model].family.masking]
    return HATCHES[(others.index(loss) if loss in others else -1) % len(HATCHES)]
