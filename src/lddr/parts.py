"""Parts of a model (latents, objectives, likelihoods, networks): modules whose constructors declare their settings.

The command line, run folders and reports need the names, settings and class constants of all parts, but importing
PyTorch takes seconds. So `make pages` describes lddr's own parts in parts.json, which a test keeps current; a part from
somewhere else is inspected when its module registers it. Either way the constructor's signature is the only place where
a setting is declared:

    num_latents: Annotated[int, Setting("Number of latents.", at_least=1)] = 10
"""

import hashlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from lddr.errors import UserError
from lddr.registry import Registry
from lddr.settings import KINDS, Rule, Setting, claim

T = TypeVar("T", bound=type)
DESCRIPTIONS = Path(__file__).with_name("parts.json")
OWN = re.compile(r"own-(\w+)-[0-9a-f]{8}")  # name of a part that a user gave as a module
CONSTANTS = (bool, int, float, str, tuple, dict)  # types of the class attributes that a part has, too
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
GIVEN = {"encoder": ("image_shape", "outputs"), "decoder": ("inputs", "image_shape")}  # arguments that lddr gives


@dataclass(frozen=True)
class Part:
    """A registered class: its name, its settings, and its class constants, which are also attributes of the part."""

    kind: str
    name: str
    module: str = field(compare=False)
    class_name: str = field(compare=False)
    rules: Mapping[str, Rule] = field(compare=False)
    constants: Mapping[str, Any] = field(compare=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "constants":  # not there yet while it is being unpickled
            raise AttributeError(name)
        try:
            return self.constants[name]
        except KeyError:
            raise AttributeError(f"the {self.kind} {self.name!r} has no constant {name!r}") from None

    def __call__(self, **settings: Any) -> "Choice":
        """Return the part with these settings, checked; those left out have their defaults."""
        for name in settings.keys() - self.rules.keys():
            raise TypeError(f"the {self.kind} {self.name!r} has no setting {name!r}")
        values = {name: settings.get(name, rule.default) for name, rule in self.rules.items()}
        return Choice(self, tuple((name, self.rules[name].fitting(name, value)) for name, value in values.items()))

    @property
    def cls(self) -> type:
        """The class itself."""
        if not self.module:
            article = "an" if self.kind[0] in "aeiou" else "a"
            raise UserError(
                f"this model has {article} {self.kind} of your own, {self.class_name}; give it: "
                f"Trained.load(FOLDER, {self.kind}=...), or register its class in a plug-in"
            )
        cls = getattr(import_module(self.module), self.class_name)
        if cls.part.rules != self.rules:  # otherwise a model would have settings that its source file no longer has
            raise UserError(f"the settings of {self.class_name} have changed since parts.json; run: make pages")
        return cls


@dataclass(frozen=True, repr=False)
class Choice:
    """A part with a value for each of its settings, which are also attributes; `build` makes the module."""

    part: Part
    _values: tuple[tuple[str, Any], ...]  # of the settings, in a form that can be hashed

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("part", "_values"):  # not there yet while it is being unpickled
            raise AttributeError(name)
        settings = self.settings
        return settings[name] if name in settings else getattr(self.part, name)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self._values)})"

    @property
    def name(self) -> str:
        return self.part.name

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self._values)

    @property
    def rules(self) -> Mapping[str, Rule]:
        return self.part.rules

    def changed(self, **settings: Any) -> "Choice":
        """Return the same part with other values for these settings."""
        return self.part(**self.settings | settings)

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, **self.settings}

    def build(self) -> Any:
        """Return the module."""
        return self.part.cls(**self.settings)


class Parts(Registry[Part]):
    """The parts of one kind by name: those of lddr's package `home`, and those of plug-ins.

    Modules that a user gives without registering their class have a name, too: "own-", the class, and a digest of the
    layers and the shapes of the weights. `own` holds the settings of such parts, `constants` their constants.
    """

    def __init__(
        self, kind: str, home: str, own: Mapping[str, Rule] | None = None, constants: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(kind, homes=())
        self.home, self._own, self._constants = home, own or {}, constants or {}

    def __getitem__(self, name: str) -> Part:
        if found := OWN.fullmatch(name):
            return Part(self.kind, name, "", found[1], self._own, {"title": found[1], **self._constants})
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        return bool(OWN.fullmatch(str(name))) or super().__contains__(name)

    def choice_of(self, module: Any) -> Choice:
        """Return the registered part that a module is an instance of, with its settings, or one of a user's own."""
        name = vars(type(module)).get("name")
        if isinstance(name, str) and name in self and self[name].class_name == type(module).__qualname__:
            return self[name](**module.settings)
        layout = [(key, tuple(tensor.shape)) for key, tensor in module.state_dict().items()]
        digest = hashlib.sha256(repr((repr(module), layout)).encode()).hexdigest()[:8]
        return self[f"own-{type(module).__name__}-{digest}"](**{name: getattr(module, name) for name in self._own})

    def register(self, name: str) -> Callable[[T], T]:  # type: ignore[override]
        """Return a class decorator that registers a module as `name`; annotated parameters are its settings."""

        def add(cls: T) -> T:
            cls.name = name  # type: ignore[attr-defined]
            cls.part = part = inspected(self.kind, name, cls)  # type: ignore[attr-defined]
            cls.__doc__ = _with_parameters(cls.__doc__ or "", part.rules)
            if cls.__module__ != self.home and not cls.__module__.startswith(f"{self.home}."):  # of a plug-in
                _check_constructor(part, cls)
                self._add(part)
            cls.__init__ = _checked(cls.__init__, part.rules)  # type: ignore[misc]
            return cls

        return add

    def class_named(self, class_name: str) -> type:
        """Return a class of lddr's own by the name of the class, for attributes such as `lddr.latents.Categorical`."""
        for name in self:
            if self[name].class_name == class_name:
                return self[name].cls
        raise AttributeError(f"module {self.home!r} has no attribute {class_name!r}")

    def _import_all(self) -> None:
        for part in _described(self.kind):
            self._add(part)
        super()._import_all()

    def _add(self, part: Part) -> None:
        if part.name in self._things:
            raise ValueError(f"two {self.kind}s are called {part.name!r}")
        claim(self.kind, part.class_name, part.rules)
        self._things[part.name] = part


def inspected(kind: str, name: str, cls: type) -> Part:
    """Return the part of a class that has been imported."""
    try:
        parameters = inspect.signature(cls, eval_str=True).parameters.values()
    except NameError as error:
        raise UserError(f"an annotation in the constructor of {cls.__qualname__} cannot be read: {error}") from error
    rules = {each.name: rule for each in parameters if (rule := _rule(each.annotation, each.default))}
    public = {each: getattr(cls, each) for each in dir(cls) if each[0] != "_"}
    constants = {each: value for each, value in public.items() if isinstance(value, CONSTANTS) or value is None}
    return Part(kind, name, cls.__module__, cls.__qualname__, rules, constants)


def _check_constructor(part: Part, cls: type) -> None:
    """Raise UserError if lddr cannot build a plug-in's class, or if one of its settings is not declared properly."""
    where, given = f"the {part.kind} {part.name!r} ({part.module}.{part.class_name})", GIVEN.get(part.kind, ())
    parameters = inspect.signature(cls).parameters.values()
    required = [each.name for each in parameters if each.default is each.empty and each.kind not in VARIADIC]
    if len(required) != len(given):
        first = f"{' and '.join(given)} first, and " if given else ""
        found = ", ".join(required) or "no others"
        raise UserError(f"{where}: its constructor must take {first}only parameters with a default, but has {found}")
    for name, rule in part.rules.items():
        if rule.kind not in KINDS:
            types = "int, float, bool, str, tuple[int, ...] or Literal"
            raise UserError(f"{where}: {name} must be annotated as {types}, not {rule.kind}")
        rule.fitting(f"{where}: the default of {name}", rule.default)
    if part.kind == "latent" and "num_latents" not in part.rules:
        example = 'num_latents: Annotated[int, Setting("How many latents.", at_least=1)] = 10'
        raise UserError(f"{where}: its constructor has no setting num_latents; declare it: {example}")


def _checked(constructor: Callable[..., None], rules: Mapping[str, Rule]) -> Callable[..., None]:
    """Return the constructor with checked settings, all of which are kept in the attribute `settings`."""
    signature = inspect.signature(constructor)

    @wraps(constructor)
    def construct(self: Any, *values: Any, **named: Any) -> None:
        bound = signature.bind(self, *values, **named)
        bound.apply_defaults()
        settings = {name: rule.fitting(name, bound.arguments[name]) for name, rule in rules.items()}
        bound.arguments.update(settings)
        constructor(*bound.args, **bound.kwargs)
        self.settings = settings

    return construct


def _with_parameters(text: str, rules: Mapping[str, Rule]) -> str:
    """The docstring of a class, with its settings as the section Parameters, before the examples."""
    about, heading, examples = inspect.cleandoc(text).partition("Examples\n--------")
    if not rules or "Parameters\n---" in about:
        return text
    parameters = "\n".join(f"{name} : {rule.kind.__name__}\n    {rule.help}" for name, rule in rules.items())
    return f"{about.rstrip()}\n\nParameters\n----------\n{parameters}\n\n{heading}{examples}".rstrip() + "\n"


def _rule(annotation: Any, default: Any) -> Rule | None:
    """Return the rule of a parameter whose annotation has a `Setting`; None for other parameters."""
    if get_origin(annotation) is not Annotated or not isinstance(annotation.__metadata__[0], Setting):
        return None
    plain, about = annotation.__origin__, annotation.__metadata__[0]
    choices = get_args(plain) if get_origin(plain) is Literal else ()
    kind = str if choices else get_origin(plain) or plain
    return Rule(default, about.help, kind, about.at_least, about.above, about.at_most, choices)


def _described(kind: str) -> Iterator[Part]:
    """Yield lddr's own parts of a kind, as parts.json describes them."""
    kinds = {each.__name__: each for each in KINDS}
    for part in json.loads(DESCRIPTIONS.read_text("utf-8"), object_hook=_with_tuples).get(kind, ()):
        rules = {name: Rule(**rule | {"kind": kinds[rule["kind"]]}) for name, rule in part["rules"].items()}
        yield Part(kind, **part | {"rules": rules})


def _with_tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


latents = Parts(
    "latent",
    "lddr.latents",
    own={"num_latents": Rule(1, "How many latents.", int)},
    constants={"is_discrete": False, "supervisions": (), "masking": (), "has_densities": True, "can_share": False},
)
objectives = Parts(
    "objective", "lddr.objectives", constants={"grid": {}, "needs_densities": False, "needs_pairs": False}
)
likelihoods = Parts("likelihood", "lddr.likelihoods")
encoders = Parts("encoder", "lddr.networks")
decoders = Parts("decoder", "lddr.networks")
