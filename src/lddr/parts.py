"""Parts of a model (latents, objectives, likelihoods, networks): modules whose constructors declare their settings.

The command line, run folders and reports need the names, settings and class constants of all parts, but importing
PyTorch takes seconds. So lddr's own parts are read from their source files (`ast`); a part from somewhere else is
inspected when its module registers it. Either way the constructor's signature is the only place where a setting is
declared:

    num_latents: Annotated[int, Setting("Number of latents.", at_least=1)] = 10

Settings of several classes may have a name in their package: NumLatents = Annotated[…].
"""

import ast
import hashlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from lddr.errors import UserError
from lddr.registry import Registry
from lddr.settings import Rule, Setting, claims

T = TypeVar("T", bound=type)
OWN = re.compile(r"own-(\w+)-[0-9a-f]{8}")  # name of a part that a user gave as a module
NAMES = {"Annotated": Annotated, "Literal": Literal, "Setting": Setting} | {
    kind.__name__: kind for kind in (int, float, str, bool, tuple)
}  # what the annotation of a setting may consist of


@dataclass(frozen=True)
class Part:
    """A registered class: its name, its settings and its class constants, which are read as attributes."""

    kind: str
    name: str
    module: str
    class_name: str
    rules: Mapping[str, Rule]
    constants: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "constants":  # not there yet while it is being unpickled
            raise AttributeError(name)
        try:
            return self.constants[name]
        except KeyError:
            raise AttributeError(f"the {self.kind} {self.name!r} has no constant {name!r}") from None

    def __call__(self, **settings: Any) -> "Choice":
        """The part with these settings, checked; those left out have their defaults."""
        return Choice(self, settings)

    @property
    def cls(self) -> type:
        """The class itself."""
        if not self.module:
            what = f"this model has {_article(self.kind)} of your own, {self.class_name}"
            raise UserError(
                f"{what}; give it: Trained.load(FOLDER, {self.kind}=...), or register its class in a plug-in"
            )
        return getattr(import_module(self.module), self.class_name)


class Choice:
    """A part and a value for each of its settings, which are read as attributes; `build` makes the module."""

    def __init__(self, part: Part, settings: Mapping[str, Any]) -> None:
        for name in settings.keys() - part.rules.keys():
            raise TypeError(f"the {part.kind} {part.name!r} has no setting {name!r}")
        self.part, self.name = part, part.name
        values = {name: settings.get(name, rule.default) for name, rule in part.rules.items()}
        self.settings = MappingProxyType(
            {name: part.rules[name].fitting(name, value) for name, value in values.items()}
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("part", "settings"):  # not there yet while it is being copied
            raise AttributeError(name)
        return self.settings[name] if name in self.settings else getattr(self.part, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Choice) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.settings.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.part, dict(self.settings))

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.part.kind, self.name, *self.settings.items()

    @property
    def rules(self) -> Mapping[str, Rule]:
        return self.part.rules

    def changed(self, **settings: Any) -> "Choice":
        """The same part with other values for these settings."""
        return Choice(self.part, {**self.settings, **settings})

    def changes(self, usual: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
        """The settings that differ from `usual`, and from their defaults where it says nothing."""
        defaults = {name: usual.get(name, rule.default) for name, rule in self.rules.items()}
        return {name: value for name, value in self.settings.items() if value != defaults[name]}

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, **self.settings}

    def build(self) -> Any:
        """The module."""
        return self.part.cls(**self.settings)


class Parts(Registry[Part]):
    """The parts of one kind by name: those of lddr's package `home`, and those of plug-ins.

    A module that a user gives without registering its class has a name, too: "own-", its class, and a digest of its
    layers and the shapes of its weights. `own` holds the settings that such parts have, `constants` their constants.
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
        """The registered part that a module is an instance of, with its settings, or one of a user's own."""
        name = vars(type(module)).get("name")
        if isinstance(name, str) and name in self and self[name].class_name == type(module).__qualname__:
            return Choice(self[name], module.settings)
        layout = [(key, tuple(tensor.shape)) for key, tensor in module.state_dict().items()]
        digest = hashlib.sha256(repr((repr(module), layout)).encode()).hexdigest()[:8]
        part = self[f"own-{type(module).__name__}-{digest}"]
        return Choice(part, {name: getattr(module, name) for name in self._own})

    def register(self, name: str) -> Callable[[T], T]:  # type: ignore[override]
        """Class decorator that makes a module known as `name`; its constructor's annotations are its settings."""

        def add(cls: T) -> T:
            cls.name = name  # type: ignore[attr-defined]
            part = _inspected(self.kind, name, cls)
            cls.__init__ = _checked(cls.__init__, part.rules)  # type: ignore[misc]
            cls.__doc__ = _with_parameters(cls.__doc__ or "", part.rules)
            if cls.__module__ != self.home and not cls.__module__.startswith(f"{self.home}."):
                self._add(part)
            return cls

        return add

    def class_named(self, class_name: str) -> type:
        """A class of lddr's own by the name of the class, as `lddr.latents.Categorical` looks it up."""
        for name in self:
            if self[name].class_name == class_name:
                return self[name].cls
        raise AttributeError(f"module {self.home!r} has no attribute {class_name!r}")

    def _import_all(self) -> None:
        for part in _read(self.kind, self.home):
            self._add(part)
        super()._import_all()

    def _add(self, part: Part) -> None:
        if part.name in self._things:
            raise ValueError(f"two {self.kind}s are called {part.name!r}")
        claims.claim(self.kind, part)
        self._things[part.name] = part


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _inspected(kind: str, name: str, cls: type) -> Part:
    """A class that has been imported."""
    parameters = inspect.signature(cls, eval_str=True).parameters.values()
    rules = {each.name: rule for each in parameters if (rule := _rule(each.annotation, each.default))}
    constants = {each: getattr(cls, each) for each in dir(cls) if _is_constant(getattr(cls, each)) and each[0] != "_"}
    return Part(kind, name, cls.__module__, cls.__qualname__, rules, constants)


def _checked(constructor: Callable[..., None], rules: Mapping[str, Rule]) -> Callable[..., None]:
    """The same constructor, which refuses settings out of their range and keeps all of them in `settings`."""
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


def _is_constant(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | tuple | dict)


def _rule(annotation: Any, default: Any) -> Rule | None:
    """The rule of a parameter whose annotation has a `Setting`; None for other parameters."""
    if get_origin(annotation) is not Annotated:
        return None
    plain, about = annotation.__origin__, annotation.__metadata__[0]
    if not isinstance(about, Setting):
        return None
    choices = get_args(plain) if get_origin(plain) is Literal else ()
    kind = str if choices else get_origin(plain) or plain
    return Rule(default, about.help, kind, about.at_least, about.above, about.at_most, choices)


def _read(kind: str, home: str) -> Iterator[Part]:
    """The registered classes of a package's files, or of one module, in the order of files and lines."""
    classes: dict[str, tuple[str, ast.ClassDef]] = {}
    names: dict[str, Any] = dict(NAMES)
    for module, path in _files(home):
        for node in ast.parse(path.read_text("utf-8")).body:
            match node:
                case ast.ClassDef():
                    classes[node.name] = module, node
                case ast.Assign(targets=[ast.Name(id=alias)]) if "Setting(" in (text := ast.unparse(node.value)):
                    names[alias] = eval(text, names.copy())  # our own source file
    for class_name, (module, node) in classes.items():
        for decorator in node.decorator_list:
            match decorator:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id=registry), attr="register"),
                    args=[ast.Constant(value=str(name))],
                ) if registry == f"{kind}s":
                    lineage = list(_lineage(node, {name: each for name, (_, each) in classes.items()}))
                    constants = {key: value for each in reversed(lineage) for key, value in _constants(each)}
                    yield Part(kind, name, module, class_name, _signature(lineage, names), constants)


def _files(home: str) -> Iterator[tuple[str, Path]]:
    spec = find_spec(home)
    if spec is None or spec.origin is None:
        raise UserError(f"the package {home} is incomplete; install lddr again")
    place = Path(spec.origin)
    if place.name != "__init__.py":
        yield home, place
        return
    for path in sorted(place.parent.glob("*.py")):
        if path != place:
            yield f"{home}.{path.stem}", path


def _lineage(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> Iterator[ast.ClassDef]:
    """A class and its base classes of the same package, nearest first."""
    yield node
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            yield from _lineage(classes[base.id], classes)


def _signature(lineage: list[ast.ClassDef], names: Mapping[str, Any]) -> dict[str, Rule]:
    """The settings of the nearest constructor, whose annotations consist of these names."""
    for node in lineage:
        for member in node.body:
            if isinstance(member, ast.FunctionDef) and member.name == "__init__":
                return dict(_settings(member.args, names))
    return {}


def _settings(arguments: ast.arguments, names: Mapping[str, Any]) -> Iterator[tuple[str, Rule]]:
    positional = arguments.posonlyargs + arguments.args
    missing = [None] * (len(positional) - len(arguments.defaults))
    pairs = [*zip(positional, [*missing, *arguments.defaults], strict=True)]
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    for argument, default in pairs:
        text = "" if default is None or argument.annotation is None else ast.unparse(argument.annotation)
        if "Setting(" in text or text in names.keys() - NAMES.keys():
            rule = _rule(eval(text, dict(names)), ast.literal_eval(default or ""))
            assert rule is not None
            yield argument.arg, rule


def _constants(node: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    """The class attributes with literal values."""
    for member in node.body:
        match member:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                try:
                    yield name, ast.literal_eval(value)
                except ValueError:
                    continue


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
