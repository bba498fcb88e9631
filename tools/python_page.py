"""The page of the Python interface: the public names with their signatures and docstrings, in Markdown."""

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

HEAD = """# Python API
The public names of lddr, generated from the docstrings by `make pages`. They are imported on first use.

## Train, load, evaluate
"""
METRICS = """
## Metrics
A metric is a function of codes (samples, latents) and factors (samples, factors) whose result has a `.score`.
[Metrics](metrics.md) gives the formula, range and direction of each.

"""
PARTS = """
## Base classes for your own parts
[Adding a part](adding-a-part.md) shows them in use.

"""
OWN = ("lddr.metrics.metric.metric", "lddr.metrics.metric.Result", "lddr.objectives.objective.Objective")
OWN += ("lddr.objectives.objective.AdversarialObjective", "lddr.objectives.objective.Loss", "lddr.vae.Output")
OWN += ("lddr.latents.latent.Latent", "lddr.latents.latent.Posterior", "lddr.latents.latent.Sample")
OWN += ("lddr.likelihoods.Likelihood", "lddr.settings.Setting", "lddr.parts.Parts")


def text() -> str:
    import lddr
    from lddr import metrics

    package = griffe.load("lddr", search_paths=[Path(lddr.__file__).parents[1]], docstring_parser="numpy")
    public = {f"{home}.{name}": f"lddr.{name}" for name, home in lddr._HOMES.items()}
    functions = {
        f"{thing.__module__}.{name}": f"lddr.metrics.{name}" for name, thing in vars(metrics).items() if callable(thing)
    }
    sorted_functions = dict(sorted(functions.items(), key=lambda item: item[1]))
    parts = {name: name for name in OWN}

    def described(names: dict[str, str]) -> str:
        found = (_described(package[home.removeprefix("lddr.")], name, "###") for home, name in names.items())
        return "\n".join(line for lines in found for line in lines)

    return HEAD + described(public) + METRICS + described(sorted_functions) + PARTS + described(parts)


def _described(thing: Any, name: str, heading: str) -> Iterator[str]:
    """Yield the Markdown lines of a class or function, and of the public members of a class."""
    yield f"{heading} `{name}`"
    if thing.is_class:
        constructor = thing.members.get("__init__")
        yield from _code(_signature(constructor, thing.name) if constructor is not None else f"class {thing.name}")
    elif thing.is_function:
        yield from _code(_signature(thing, thing.name))
    if thing.docstring is not None:
        for section in _sections(thing.docstring):
            yield from _section(section)
    if thing.is_class:
        for member in thing.members.values():
            if (
                member.is_public
                and not member.is_alias
                and member.docstring is not None
                and not member.name.startswith("_")
            ):
                yield from _described(member, f"{thing.name}.{member.name}", heading + "#")


def _sections(docstring: Any) -> list[Any]:
    return docstring.parse("google") if "\nArgs:" in docstring.value else docstring.parsed


def _signature(function: Any, name: str) -> str:
    parameters = [each for each in function.parameters if each.name not in ("self", "cls")]
    returns = f" -> {function.returns}" if str(function.returns) != "None" else ""
    return f"{name}({', '.join(_parameters(parameters))}){returns}"


def _parameters(parameters: list[Any]) -> Iterator[str]:
    """Yield names with their defaults; types are in the tables and in the source."""
    starred = False
    for each in parameters:
        kind = each.kind.value
        if kind == "keyword-only" and not starred:
            starred = True
            yield "*"
        starred = starred or kind == "variadic positional"
        mark = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        default = "" if mark or each.default is None else f"={each.default}"
        yield f"{mark}{each.name}{default}"


def _code(signature: str) -> Iterator[str]:
    if len(signature) > 110 and "(" in signature:
        before, _, rest = signature.partition("(")
        inner, _, after = rest.rpartition(")")
        lines = textwrap.wrap(inner, 106, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
        signature = "\n".join([f"{before}(", *lines, f"){after}"])
    yield from ("```text", signature, "```", "")


def _section(section: Any) -> Iterator[str]:
    kind = section.kind.value
    if kind == "text":
        yield from (section.value, "")
    elif kind == "examples":
        for part, example in section.value:
            yield from (example, "") if part.value == "text" else ("```pycon", example, "```", "")
    elif kind in ("parameters", "attributes", "returns", "raises", "other parameters", "yields"):
        yield from (f"**{kind.capitalize()}**", "")
        for each in section.value:
            named = " : ".join(f"`{part}`" for part in (getattr(each, "name", ""), str(each.annotation or "")) if part)
            yield (
                f"- {named}: {' '.join(each.description.split())}"
                if named
                else f"- {' '.join(each.description.split())}"
            )
        yield ""
    else:  # notes and the like
        yield from (f"**{section.title}**", "", section.value.description, "")
