"""Everything that decides what a run becomes: frozen settings, one default each, a stable name for each combination."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

from lddr.errors import UserError
from lddr.models.categorical import Categorical
from lddr.models.gaussian import Gaussian
from lddr.models.latent import latents
from lddr.models.vae import Networks
from lddr.models.zoo import models
from lddr.objectives.losses import Objective
from lddr.objectives.supervision import Supervision

Precision = Literal["fp32", "bf16"]


@dataclass(frozen=True)
class Training:
    """Settings of the optimisation; the paper's are the defaults."""

    steps: int = 300_000
    batch_size: int = 64
    learning_rate: float = 1e-4
    seed: int = 0
    precision: Precision = "fp32"


@dataclass(frozen=True)
class Config:
    """A run: data x latent x networks x objective, supervision, and how it is trained."""

    model: str
    dataset: str
    latent: Gaussian | Categorical
    objective: Objective
    networks: Networks = field(default_factory=Networks)
    training: Training = field(default_factory=Training)
    supervision: Supervision | None = None
    resolution: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Every setting, resolved, as plain values."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, settings: dict[str, Any], format: int = 2) -> "Config":  # noqa: A002 (both alike so far)
        """The inverse of `as_dict`, also for settings of an older format; strict: those it cannot read are refused."""
        try:
            model = models[settings["model"]]
            return cls(
                **{name: settings[name] for name in ("model", "dataset", "resolution")},
                latent=model.latent_settings(**settings["latent"]),
                objective=model.objective_settings(**settings["objective"]),
                networks=Networks(**settings["networks"] | {"kernels": tuple(settings["networks"]["kernels"])}),
                training=Training(**settings["training"]),
                supervision=settings["supervision"] and Supervision(**settings["supervision"]),
            )
        except (KeyError, TypeError) as error:
            raise UserError(
                f"these settings are of another version of lddr ({error}); use that version for them"
            ) from error

    @property
    def latent_name(self) -> str:
        """The latent family, by its name in the registry."""
        return models[self.model].latent

    @property
    def fingerprint(self) -> str:
        """Eight characters that are the same for the same settings and for no others."""
        canonical = json.dumps(self.as_dict(), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:8]

    @property
    def run_name(self) -> str:
        """The run's folder: dataset, model, what differs from the model's defaults, seed, fingerprint."""
        dataset = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in self.dataset).strip("-")[
            -40:
        ]
        knobs = [f"{name}={value:g}" for name, value in asdict(self.objective).items() if name in self.objective.grid]
        if self.supervision:
            knobs += [f"{self.supervision.loss}={self.supervision.labels}", f"omega={self.supervision.omega:g}"]
        return "_".join([dataset, self.model, *knobs, f"seed={self.training.seed}", self.fingerprint])


PIECES = ("latent", "objective", "networks", "training", "supervision")


def configure(model: str = "dvae", dataset: str = "dsprites", preset: str = "paper", **settings: Any) -> Config:
    """The settings of a model on a dataset: the preset's, changed by those given by name (None changes nothing)."""
    from lddr.presets import preset_settings

    chosen = models[model]
    given = {name: value for name, value in settings.items() if value is not None}
    wanted = preset_settings(preset, model, dataset) | given
    loss = wanted.pop("supervision", None)
    base = Config(
        model=model,
        dataset=dataset,
        latent=chosen.latent_settings(),
        objective=chosen.objective_settings(),
        supervision=Supervision(loss) if loss else None,
        resolution=wanted.pop("resolution", None),
    )
    return changed(base, wanted)


def changed(config: Config, settings: dict[str, Any]) -> Config:
    """The same with other values of these settings, wherever they belong."""
    homes = {name: piece for piece in PIECES if (part := getattr(config, piece)) for name in _names(part)}
    for name, value in settings.items():
        if name not in homes:
            raise UserError(_unknown(config, name, homes))
        part = getattr(config, homes[name])
        config = replace(config, **{homes[name]: replace(part, **{name: _fitting(part, name, value)})})
    return config


def _names(part: Any) -> Iterable[str]:
    return (setting.name for setting in fields(part) if setting.name != "loss")


def _fitting(part: Any, name: str, value: Any) -> Any:
    """The value in the type of its default, so that 10 and 10.0 are the same run."""
    kind = type(getattr(part, name))
    try:
        fitting = tuple(value) if kind is tuple else kind(value)
    except (TypeError, ValueError):
        raise UserError(f"{name} must be a {kind.__name__}, not {value!r}") from None
    if kind is int and fitting != value:
        raise UserError(f"{name} must be a whole number, not {value!r}")
    return fitting


def _unknown(config: Config, name: str, homes: dict[str, str]) -> str:
    owners = [other for other in models if name in models[other].knobs or name in _latent_names(other)]
    if owners:
        return f"{config.model} has no setting {name!r}; models with it: {', '.join(owners)}"
    return f"unknown setting {name!r}; {config.model} has: {', '.join(sorted(homes))}"


def _latent_names(model: str) -> list[str]:
    return [setting.name for setting in fields(latents[models[model].latent])]
