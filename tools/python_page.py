"""The page of the Python interface: the public names, described by their docstrings."""

HEAD = """# Python
What `import lddr` offers, from the docstrings. Names are imported when they are first used.

"""
METRICS = """
## Metrics
A metric is a function of codes (samples, latents) and factors (samples, factors) whose result has a `.score`.
[Scores](metrics.md) explains what each means and needs.

"""
PARTS = """
## For parts of your own
[Adding a part](adding-a-part.md) shows them at work.

"""
OWN = ("lddr.metrics.metric.metric", "lddr.metrics.metric.Result", "lddr.objectives.objective.Objective")
OWN += ("lddr.objectives.objective.AdversarialObjective", "lddr.objectives.objective.Loss", "lddr.vae.Output")
OWN += ("lddr.latents.latent.Latent", "lddr.latents.latent.Posterior", "lddr.latents.latent.Sample")
OWN += ("lddr.likelihoods.Likelihood", "lddr.settings.Setting", "lddr.parts.Parts")


def text() -> str:
    import lddr
    from lddr import metrics

    public = [f"{home}.{name}" for name, home in lddr._HOMES.items()]
    functions = [f"{thing.__module__}.{name}" for name, thing in sorted(vars(metrics).items()) if callable(thing)]
    return HEAD + _described(public) + METRICS + _described(functions) + PARTS + _described(OWN)


def _described(names: tuple[str, ...] | list[str]) -> str:
    return "\n".join(f"::: {name}\n" for name in names)
