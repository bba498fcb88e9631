"""Describe lddr's own latents, objectives, likelihoods and networks in src/lddr/parts.json: names, settings, constants.

`make pages` writes the file from the constructors, so that help and settings need not import PyTorch.
"""

import json
from dataclasses import fields
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from torch import nn

from lddr import parts
from lddr.parts import Part, Parts
from lddr.settings import Rule


def text() -> str:
    """Return the contents of the file."""
    registries = (parts.latents, parts.objectives, parts.likelihoods, parts.encoders, parts.decoders)
    described = {registry.kind: [*map(_part, _own_parts(registry))] for registry in registries}
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"


def write() -> None:
    """Write the file."""
    parts.DESCRIPTIONS.write_text(text(), "utf-8")


def _own_parts(registry: Parts) -> list[Part]:
    """Return the parts that the modules of lddr register, in the order of files and lines."""
    home = import_module(registry.home)
    names = [f"{registry.home}.{each.name}" for each in iter_modules(getattr(home, "__path__", ()))] or [registry.home]
    classes = [thing for name in names for thing in vars(import_module(name)).values() if isinstance(thing, type)]
    found = [vars(cls)["part"] for cls in dict.fromkeys(classes) if "part" in vars(cls)]
    return sorted((part for part in found if part.kind == registry.kind), key=lambda part: names.index(part.module))


def _part(part: Part) -> dict[str, Any]:
    rules = {name: _rule(rule) for name, rule in part.rules.items()}
    own = {name: value for name, value in part.constants.items() if name != "name" and not hasattr(nn.Module, name)}
    return {"name": part.name, "module": part.module, "class_name": part.class_name, "rules": rules, "constants": own}


def _rule(rule: Rule) -> dict[str, Any]:
    changed = {each.name: getattr(rule, each.name) for each in fields(rule) if getattr(rule, each.name) != each.default}
    return changed | {"kind": rule.kind.__name__}
