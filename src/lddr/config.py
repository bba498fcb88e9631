"""The settings of a run: everything that its results depend on, and a stable name for each combination."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from lddr import schedules
from lddr.data import FITS
from lddr.errors import UserError, hint
from lddr.latents import latents
from lddr.models import models
from lddr.networks import decoders, encoders
from lddr.objectives import objectives
from lddr.parts import Choice, likelihoods
from lddr.settings import Settings, SharedSetting, Size, as_text, claim, flattened, rules_of, setting, shared_settings
from lddr.supervision import Supervision

BERNOULLI = "bernoulli"  # the paper's likelihood


@dataclass(frozen=True)
class Networks(Settings):
    """Settings of the networks; the paper's are the defaults."""

    width: int = setting(32, "Channels of the first convolution; all others follow.", at_least=1)
    kernels: tuple[int, ...] = setting(
        (4, 4, 4, 4), "Kernel sizes of the encoder's four convolutions; the authors' code has 4,4,2,2.", at_least=2
    )
    depth: int = setting(1, "Residual blocks per level, for networks that have them.", at_least=1)
    encoder: str = setting("convolution", "Network that encodes images; convolution is the paper's.")
    decoder: str = setting(
        "deconvolution", "Network that decodes; deconvolution is the paper's, broadcast the paper's for circles."
    )
    initialiser: str = setting(
        "truncated",
        "Initial weights: the authors' truncated normal, torch's uniform, or He's normal (kaiming).",
        choices=("truncated", "uniform", "kaiming"),
    )
    mean_bias: bool = setting(False, "Initialise the decoder's output bias to the mean image brightness.")

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = encoders[self.encoder], decoders[self.decoder]  # refuses unknown names


@dataclass(frozen=True)
class Training(Settings):
    """Settings of the optimisation; the paper's are the defaults."""

    seed: int = setting(0, "Seed of the initial weights, the batches and the noise.", at_least=0)
    steps: int = setting(300_000, "Training steps; schedules span all of them.", at_least=1)
    batch_size: int = setting(64, "Images per step.", at_least=1)
    learning_rate: float = setting(1e-4, "Learning rate of Adam.", above=0)
    schedule: str = setting("constant", "Learning-rate schedule; cosine decays to 0.", choices=("constant", "cosine"))
    schedule_steps: int = setting(
        0,
        "Steps after which a cosine schedule reaches 0 and rises again, as torch's does (0: all steps).",
        at_least=0,
    )
    weight_decay: float = setting(0.0, "Weight decay of AdamW, on weights and not on biases.", at_least=0)
    clip: float = setting(0.0, "Clip each gradient element to this value (0 turns clipping off).", at_least=0)
    clip_of: str = setting(
        "all",
        "Clip all gradients, or only those of weights and not of biases and latent values.",
        choices=("all", "weights"),
    )
    reconstruction_weight: float = setting(
        1.0, "Weight of the reconstruction; (64 / resolution)^2 keeps the paper's balance with the rest.", above=0
    )
    min_contrast: float = setting(
        0.0,
        "Raise the reconstruction weight of low-contrast images until the mean image costs at least this many nats "
        "more than a perfect copy (0 turns this off).",
        at_least=0,
    )
    correlate: str = setting(
        "none",
        'Pairs of factors to correlate in training, with the width of each: "x:y=0.2", "x:y=0.2,x:scale=0.2", or '
        '"x:*=0.2" for x and all others.',
    )
    precision: str = setting(
        "fp32",
        "bf16 computes the networks in bfloat16; weights and loss terms stay in float32.",
        choices=("fp32", "bf16"),
    )

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of a step; a cosine over all steps reaches 0 just after the last one."""
        if self.schedule == "constant":
            return self.learning_rate
        fall = self.schedule_steps or self.steps
        since = abs((step + fall) % (2 * fall) - fall)  # steps from the nearest maximum
        return schedules.cosine(self.learning_rate, 0.0, since, fall)


@dataclass(frozen=True)
class Config(Settings):
    """A run: dataset, latent, networks, objective, likelihood, supervision, and how it is trained."""

    dataset: str
    latent: Choice
    objective: Choice
    networks: Networks = field(default_factory=Networks)
    training: Training = field(default_factory=Training)
    supervision: Supervision | None = None
    likelihood: Choice = field(default_factory=lambda: likelihoods[BERNOULLI]())
    resolution: int | str | None = setting(
        None,
        "Pixels per side, or HEIGHTxWIDTH such as 48x96: 8 to 512 for your own images, some squares for drawn ones.",
        kind=Size,
    )
    fit: str | None = setting(
        None,
        "How your own pictures get another aspect ratio: pad (the default), crop or stretch; legacy prepares them as "
        "versions without this setting did.",
        kind=str,
        choices=FITS,
    )
    background: str = setting(
        "auto",
        "Colour behind your own pictures where they are transparent, and around padded ones: a name or #rrggbb; auto "
        "takes black or white, whichever shows the pictures better, and pads with the colour of their edge.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fit == "legacy":  # that of runs before the setting existed, and of datasets other than a user's own
            object.__setattr__(self, "fit", None)
        if self.background != "auto":
            from lddr.data.pictures import as_hex

            object.__setattr__(self, "background", as_hex(self.background))
        latent = self.latent.settings
        if "low" in latent and latent["low"] >= latent["high"]:  # before its constructor says so
            raise UserError(f"low must be less than high, not {latent['low']:g} and {latent['high']:g}")
        if self.objective.needs_densities and not self.latent.has_densities:
            raise UserError(
                f"the objective {self.objective.name!r} compares densities, and {self.latent.name} latents, which are "
                "rounded and not drawn, have none; choose another objective, such as 'factor'"
            )
        if self.objective.needs_pairs and not self.latent.can_share:
            able = ", ".join(name for name in latents if latents[name].can_share)
            raise UserError(
                f"the objective {self.objective.name!r} shares posteriors, which {self.latent.name} latents cannot; "
                f"choose one of these latents: {able}"
            )

    @property
    def model(self) -> str:
        """The name of the combination of latent and objective."""
        return models.name_of(self.latent.name, self.objective.name)

    @property
    def images(self) -> tuple[str, int | str | None, str | None, str]:
        """The arguments of `load_dataset`."""
        return self.dataset, self.resolution, self.fit, self.background

    @property
    def parts(self) -> dict[str, Any]:
        """The parts of the run that have settings, by name."""
        found = {part: getattr(self, part) for part in PARTS}
        return {part: settings for part, settings in found.items() if settings is not None} | {"config": self}

    def as_dict(self) -> dict[str, Any]:
        """Return every setting as plain values, nested as in config.json."""
        return json.loads(json.dumps(self._nested()))

    def _nested(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        plain = {name: dict(vars(value)) if isinstance(value, Settings) else value for name, value in values.items()}
        return {"model": self.model} | plain | {part: values[part].as_dict() for part in CHOICES}

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> "Config":
        """Return the settings of `as_dict`; unknown ones are refused, missing ones are those of older versions."""
        try:
            if not isinstance(settings["dataset"], str):
                raise TypeError("a dataset without a name")
            return cls(
                dataset=settings["dataset"],
                latent=_piece(latents, settings["latent"]),
                objective=_piece(objectives, settings["objective"]),
                networks=Networks(**settings["networks"]),
                training=Training(**settings["training"]),
                supervision=settings["supervision"] and Supervision(**BEFORE | settings["supervision"]),
                resolution=settings["resolution"],
                fit=settings.get("fit"),
                background=settings.get("background", "auto"),
                likelihood=_piece(likelihoods, settings.get("likelihood", {"name": BERNOULLI})),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise UserError(
                f"these settings are of another version of lddr ({error}); use that version for them"
            ) from error

    def flat(self) -> dict[str, Any]:
        """Return every setting under its name on the command line, and the names of the parts."""
        return flattened(self._nested())

    @property
    def fingerprint(self) -> str:
        """Eight characters that identify the settings.

        Settings at their defaults, or as before the setting existed, do not count: new settings rename no run.
        """
        names = {"dataset": self.dataset, "latent": self.latent.name, "objective": self.objective.name}
        names |= {"supervision": self.supervision.loss} if self.supervision else {}
        names |= {"likelihood": self.likelihood.name} if self.likelihood.name != BERNOULLI else {}
        changes = {
            name: getattr(part, name)
            for part in self.parts.values()
            for name, rule in rules_of(part).items()
            if getattr(part, name) != BEFORE.get(name, rule.default)
        }
        return hashlib.sha256(json.dumps(names | changes, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def run_name(self) -> str:
        """The name of the run's folder: dataset, model, the settings that the paper varies, seed, fingerprint."""
        plain = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in self.dataset)
        knobs = [f"{name}={self.objective.settings[name]:g}" for name in self.objective.grid]
        if self.supervision:
            knobs += [f"{self.supervision.loss}={self.supervision.labels}", f"omega={self.supervision.omega:g}"]
        return "_".join([plain.strip("-")[-40:], self.model, *knobs, f"seed={self.training.seed}", self.fingerprint])


CHOICES = ("latent", "objective", "likelihood")  # parts that are chosen by name
PARTS = (*CHOICES, "networks", "training", "supervision")
BEFORE = {"risk_of": "image"}  # the value of runs before the setting existed, where it is not the default
for _part, _class in {"networks": Networks, "training": Training, "config": Config, "supervision": Supervision}.items():
    claim(_part, _class.__name__, rules_of(_class))


def _piece(registry: Any, settings: dict[str, Any]) -> Any:
    return registry[settings["name"]](**{key: value for key, value in settings.items() if key != "name"})


def all_settings() -> dict[str, SharedSetting]:
    """Return every setting that some run can have, by name."""
    return shared_settings(_pieces(latents, objectives))


def settings_of(model: str) -> dict[str, SharedSetting]:
    """Return every setting that runs of this model can have, by name."""
    point = models[model]
    return shared_settings(_pieces([point.latent], [point.objective]))


def _pieces(latent_names: Iterable[str], objective_names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    yield from (("training", Training), ("config", Config), ("networks", Networks))
    yield from ((name, latents[name]) for name in latent_names)
    yield from ((name, objectives[name]) for name in objective_names)
    yield from ((name, likelihoods[name]) for name in likelihoods)
    yield "supervision", Supervision


def supervisions() -> dict[str, tuple[str, ...]]:
    """Return every supervised loss, with the latents that have it."""
    having = {latent: latents[latent].supervisions for latent in latents}
    known = dict.fromkeys(loss for losses in having.values() for loss in losses)
    return {loss: tuple(latent for latent, losses in having.items() if loss in losses) for loss in known}


def configure(
    model: str | None = None,
    dataset: str = "dsprites",
    preset: str = "paper",
    *,
    latent: str | None = None,
    objective: str | None = None,
    supervision: str | None = None,
    likelihood: str | None = None,
    own_size: int | str | None = None,
    own_factors: int | None = None,
    **settings: Any,
) -> Config:
    """Return the settings of a model, or of a latent and an objective: the preset's, changed by those given by name.

    A setting that is None counts as left out. Paths are normalised: ./pics and pics are the same run. `own_size` is the
    size of a user's own images: a preset makes them smaller, never larger. `own_factors` is the number of their
    factors: with labels, the presets quick and standard have as many latents.
    """
    from lddr.data.dataset import datasets
    from lddr.data.load import as_it_is, one_name
    from lddr.presets import preset_settings

    dataset = one_name(dataset)
    name = models.chosen(model, latent, objective)
    point, given = models[name], {key: value for key, value in settings.items() if value is not None}
    if dataset in datasets and (given.get("fit", "legacy"), given.get("background", "auto")) != ("legacy", "auto"):
        raise as_it_is(dataset)
    loss = None if supervision is None else Supervision(supervision)
    shape = likelihoods[likelihood or BERNOULLI]()
    base = Config(dataset, point.family(), point.goal(), supervision=loss, likelihood=shape)
    if loss is not None:
        loss.check(base.latent)
    rules = {name: rule for part in base.parts.values() for name, rule in rules_of(part).items()}
    asked = {name: rules[name].fitting(name, given[name]) for name in ("resolution", "num_latents") if name in given}
    factors = len(datasets[dataset].space.factors) if dataset in datasets else own_factors
    supervised = None if loss is None else factors
    offered = preset_settings(preset, point, dataset, **asked, own_size=own_size, supervised_factors=supervised)
    return changed(base, {key: value for key, value in offered.items() if key in rules} | given)


def changed(config: Config, settings: dict[str, Any]) -> Config:
    """Return a copy with other values for these settings, whichever parts they belong to."""
    homes = {name: part for part, piece in config.parts.items() for name in rules_of(piece)}
    for name in settings:
        if name not in homes:
            raise UserError(_unknown(config, name, homes))
    for part, piece in config.parts.items():
        own = {name: value for name, value in settings.items() if homes[name] == part}
        if own:
            config = config.changed(**own if part == "config" else {part: piece.changed(**own)})
    return config


def _unknown(config: Config, name: str, homes: dict[str, str]) -> str:
    if name in rules_of(Supervision):
        fitting = ", ".join(config.latent.supervisions)
        return f"{name} belongs to supervision; choose one with supervision (--supervision), of: {fitting}"
    owners = [other for other in models if name in settings_of(other)]
    if owners:
        return f"{config.model} has no setting {name!r}; models with it: {', '.join(owners)}"
    return f"unknown setting {name!r}; {hint(name, homes)}{config.model} has: {', '.join(sorted(homes))}"


def train_words(config: Config, without: tuple[str, ...] = ()) -> list[str]:
    """Return the words of the `lddr train` command for this run, from the preset that needs the fewest flags."""
    from lddr.presets import PRESETS

    flags = {preset: found for preset in PRESETS if (found := _flags_beyond(config, preset)) is not None}
    preset = min(flags, key=lambda preset: len(flags[preset]))
    words = ["lddr", "train", "--model", config.model, "--dataset", config.dataset, "--preset", preset]
    words += ["--likelihood", config.likelihood.name] if config.likelihood.name != BERNOULLI else []
    words += ["--supervision", config.supervision.loss] if config.supervision else []
    for name, value in flags[preset].items():
        words += [] if name in without else _flag(name.replace("_", "-"), value)
    return words


def _flags_beyond(config: Config, preset: str) -> dict[str, Any] | None:
    """Return the settings that differ from a preset's at this resolution; None if one of them has no flag."""
    from lddr.data.dataset import datasets

    loss = config.supervision.loss if config.supervision else None
    names: dict[str, Any] = {"supervision": loss, "likelihood": config.likelihood.name}
    usual = configure(config.model, config.dataset, preset, **names, resolution=config.resolution).flat()
    usual["resolution"] = configure(config.model, config.dataset, preset, **names).resolution
    own = {name: getattr(part, name) for part in config.parts.values() for name in rules_of(part)}
    own["fit"] = config.fit or ("legacy" if usual["fit"] else None)
    flags = {name: value for name, value in own.items() if value != usual[name]}
    if config.supervision and config.dataset not in datasets:  # whose default depends on how many images are labelled
        flags["labels"] = config.supervision.labels
    return None if None in flags.values() else flags


def _flag(name: str, value: Any) -> list[str]:
    """Return a setting as words of the command line, with every digit."""
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}", repr(value) if isinstance(value, float) else as_text(value)]
