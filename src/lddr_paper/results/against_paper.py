"""Our medians next to the paper's quartiles: with the preset `quick`, with `standard`, and what each of them costs."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from lddr.config import configure
from lddr.metrics.metric import SIX_METRICS
from lddr.report.exhibits import Number, markdown_rows
from lddr.report.groups import scores_of
from lddr.report.style import dataset_title, metric_title, model_order, model_title
from lddr.runs.index import Run
from lddr_paper.judging import matching
from lddr_paper.published import paper_gain, paper_metric, paper_mig
from lddr_paper.results.tables import OWN_LATENTS, RESULTS, read_costs, read_csv, read_runs
from lddr_paper.tables import quartiles

BENCHMARK = Path("benchmarks") / "train.json"  # steps with the paper's settings, by lddr and by others, in one run
TIMED = {"fp32, ms": "lddr", "usual, ms": "plain PyTorch", "authors, ms": "the authors' code"}
PEERS = Path("benchmarks") / "peers.json"  # the same steps by other frameworks, in another run
TRIED = Path("docs") / "presets.csv"  # the settings that were tried before the presets were fixed
RULE_SEEDS, RULE_RATIO, RULE_FACTORS = 5, 3, 4  # of results/standard/study.toml


def paper_number(model: str, metric: str, dataset: str) -> Number | None:
    """Return the paper's median and quartiles as a share; of the VAE only the MIG follows from what is published."""
    found = paper_metric(metric, dataset) if model == "dvae" else None
    if metric == "mig":
        found = paper_mig(model, dataset) or found
        gain = paper_gain("dvae", "mig", dataset) if model == "vae" else None
        usual = paper_mig("dvae", dataset)
        if gain and usual:
            found = Number(usual.value / (1 + gain.value / 100))
    parts = (None, None, None) if found is None else (found.value, found.low, found.high)
    value, low, high = (None if part is None else part / 100 for part in parts)
    return None if value is None else Number(value, low, high)


def place(value: float, paper: Number | None) -> str:
    """Return whether a median is within the paper's quartiles, or how far above or below."""
    if paper is None or paper.low is None or paper.high is None:
        return "–"
    if value > paper.high:
        return f"{value - paper.high:.3f} above"
    return f"{paper.low - value:.3f} below" if value < paper.low else "within"


def _text(number: Number | None) -> str:
    if number is None:
        return "–"
    return f"{number.value:.3f}" + ("" if number.low is None else f" ({number.low:.3f}–{number.high:.3f})")


def compared(runs: Sequence[Run]) -> str:
    """Return median, quartiles and number of runs for each dataset, model and metric, and the paper's."""
    cells = []
    types = sorted({(str(run.value("dataset")), str(run.value("model"))) for run in runs})
    for dataset, model in sorted(types, key=lambda both: (both[0], model_order(both[1]))):
        for metric in SIX_METRICS:
            if values := scores_of(matching(runs, dataset, model), metric):
                paper = paper_number(model, metric, dataset)
                named = dataset_title(dataset), model_title(model), metric_title(metric)
                numbers = _text(quartiles(values)), str(len(values)), _text(paper), place(median(values), paper)
                cells.append((*named, *numbers))
    header = ("dataset", "model", "metric", "median (quartiles)", "runs", "the paper's", "its quartiles")
    return markdown_rows(header, cells)


def both_families(runs: Sequence[Run]) -> str:
    """Return a row for each metric: medians and quartiles of D-VAE and VAE on dSprites, and the paper's."""
    cells = []
    for metric in SIX_METRICS:
        dvae, vae = (scores_of(matching(runs, "dsprites", model), metric) for model in ("dvae", "vae"))
        paper = paper_number("dvae", metric, "dsprites")
        own = _text(quartiles(dvae)), _text(paper), place(median(dvae), paper)
        others = _text(quartiles(vae)), _text(paper_number("vae", metric, "dsprites"))
        cells.append((metric_title(metric), *own, *others))
    header = ("median (quartiles)", "D-VAE", "the paper's D-VAE", "its quartiles", "VAE", "the paper's VAE")
    return markdown_rows(header, cells)


def lead() -> dict[str, str]:
    """Return the numbers of the first paragraph: `quick` with the mean bias on dSprites."""
    runs = matching(read_runs("brightness"), "dsprites", "dvae", "vae", mean_bias="true")
    dvae = matching(runs, "dsprites", "dvae")
    places = {
        name: place(median(scores_of(dvae, name)), paper_number("dvae", name, "dsprites")) for name in SIX_METRICS
    }
    inside = [metric_title(name) for name, text in places.items() if text == "within"]
    outside = [f"{metric_title(name)} {text}" for name, text in places.items() if text != "within"]
    timed = [row for row in read_csv(RESULTS.parent / TRIED) if (row["model"], row["steps"]) == ("dvae", "10000")]
    minutes = max(float(row["minutes"]) for row in timed if row["dataset"] == "dsprites" and "changed" not in row)
    numbers = {
        f"{source}_{model.replace('-', '')}": f"{value:.3f}"
        for model in ("dvae", "vae")
        for source, value in (
            ("our", median(scores_of(matching(runs, "dsprites", model), "mig"))),
            ("paper", paper_number(model, "mig", "dsprites").value),  # type: ignore[union-attr]
        )
    }
    return numbers | {
        "standard_note": standard_note(),
        "peers_note": peers_note(),
        "lead_runs": str(len(dvae)),
        "lead_minutes": f"{minutes:.0f}",
        "lead_inside": _listed(inside),
        "lead_outside": _listed(outside),
        "lead_table": both_families(runs),
        "paper_hours": f"{_paper_hours()['plain PyTorch']:.0f}",
    }


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


# ---- Time to the paper's result


def _paper_steps() -> dict[str, float]:
    """Return code → milliseconds of a step with the paper's settings on dSprites, as far as they were measured."""
    rows = json.loads((RESULTS.parent / BENCHMARK).read_text(encoding="utf-8"))
    row = next(row for row in rows if (row["model"], row["dataset"]) == ("dvae", "dsprites"))
    return {code: row[name] for name, code in TIMED.items() if name in row}


def _paper_hours() -> dict[str, float]:
    steps = configure("dvae", "dsprites", "paper").training.steps
    return {code: steps * ms / 3.6e6 for code, ms in _paper_steps().items()}


def _peer_steps() -> list[dict[str, Any]]:
    """Return the steps of other frameworks with the paper's networks; none while they are not measured."""
    file = RESULTS.parent / PEERS
    rows = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    return [row for row in rows if row["code"] != "lddr"]


def peers_note() -> str:
    """Return where the times of other frameworks come from; an empty text while they are not measured."""
    if not _peer_steps():
        return ""
    return (
        " Other frameworks: [peers.json](../benchmarks/peers.json), a run of its own,"
        ' in processor time; their "times lddr\'s" is that of the same model in the same run.'
    )


def time_table() -> str:
    """Return what a run of the D-VAE on dSprites costs, and the median MIG it leads to."""
    cells: list[tuple[str, ...]] = []
    for preset, study in (("quick", "brightness"), ("standard", "standard")):
        scores = scores_of(matching(read_runs(study), "dsprites", "dvae", mean_bias="true"), "mig")
        ms, config = read_costs(preset).get("dvae"), configure("dvae", "dsprites", preset)
        if scores and ms:
            steps = config.training.steps
            named = f"lddr, preset `{preset}`", f"{steps:,}", f"{ms:.0f}", f"{steps * ms / 6e4:.0f} minutes"
            cells.append((*named, f"{median(scores):.3f}", str(len(scores))))
    steps, published = configure("dvae", "dsprites", "paper").training.steps, paper_mig("dvae", "dsprites")
    for code, ms in _paper_steps().items():
        named = f"{code}, the paper's settings", f"{steps:,}", f"{ms:.0f}", f"{_paper_hours()[code]:.0f} hours"
        cells.append((*named, f"{published.value / 100:.3f} in the paper" if published else "–", "–"))
    for row in _peer_steps():
        times = row["times lddr's"]
        code = f"{row['code']}, {model_title(row['model'])}: {times:.1f} times lddr's"
        paper = paper_number(row["model"], "mig", "dsprites")
        cost = f"{steps:,}", f"{row['ms']:.0f}", f"{steps * row['ms'] / 3.6e6:.0f} hours"
        cells.append((code, *cost, f"{paper.value:.3f} in the paper" if paper else "–", "–"))
    return markdown_rows(("code", "steps", "ms per step", "one run on one core", "median MIG", "runs"), cells)


# ---- At 64x64 with the preset `standard`

STANDARD = """\
## At 64x64 with the preset `standard`

The paper's resolution, the mean bias and {steps:,} steps; [scores.csv](standard/scores.csv) has a row for each run and
[study.toml](standard/study.toml) the rules, which were fixed before the runs. Each model has {seeds} on a
dataset{few}.{minutes}

{rules}

{table}

**How the preset was chosen.** D-VAEs on dSprites with other settings ([tuning/scores.csv](tuning/scores.csv)). No
rule was fixed, and these few seeds only suggest a direction. Batches of 32 reach a higher MIG in less time than the
batches of 64 of the first version. He's weights (`--initialiser kaiming`) reconstruct better after as many steps, but
their MIG is lower: no latent encodes scale alone.

{tried}
"""
TUNED = ("batch_size", "initialiser", "learning_rate", "noise_end")
TRIED_SCORES = {"reconstruction": ".0f", "elbo": ".0f", "modularity": ".2f"}
FEW = ": medians of so few runs are uncertain"


def standard_section() -> str:
    """Return the section about results/standard; an empty text while it has no runs."""
    runs = read_runs("standard")
    if not runs:
        return ""
    kinds = {(run.value("dataset"), run.value("model")) for run in runs}
    counts = sorted({len(matching(runs, str(dataset), str(model))) for dataset, model in kinds})
    seeds = f"{counts[0]} to {counts[-1]} seeds" if len(counts) > 1 else f"{counts[0]} seeds"
    steps = max(int(run.number("steps") or 0) for run in runs)
    few = FEW if counts[0] <= RULE_SEEDS else ""
    costs = {model: steps * ms / 6e4 for model, ms in read_costs("standard").items()}
    each = ", ".join(f"{model_title(model)} {minutes:.0f}" for model, minutes in costs.items())
    minutes = f" Minutes of one core for a run on dSprites: {each} ([costs.csv](costs.csv))." if costs else ""
    parts = {"few": few, "minutes": minutes, "rules": _standard_rules(runs), "table": compared(runs)}
    parts["tried"] = _tried()
    return STANDARD.format(steps=steps, seeds=seeds, **parts)


def _tried() -> str:
    """Return a row for each setting that was tried for `standard`: medians of its runs, and the MIG of each."""
    usual = configure("dvae", "dsprites", "standard").flat()
    groups: dict[tuple[str, int], list[Run]] = {}
    for run in matching(read_runs("tuning", "standard"), "dsprites", "dvae"):
        changes = [f"{name} {run.value(name)}" for name in TUNED if str(run.value(name)) != str(usual[name])]
        groups.setdefault((", ".join(changes), int(run.number("steps") or 0)), []).append(run)
    cells = []
    for (changed, steps), runs in sorted(groups.items(), key=lambda group: (group[0][1], group[0][0])):
        images = steps * int(runs[0].number("batch_size") or 0)
        known = {name: scores_of(runs, name) for name in TRIED_SCORES}
        middle = (f"{median(known[name]):{form}}" if known[name] else "–" for name, form in TRIED_SCORES.items())
        migs = ", ".join(f"{score:.3f}" for score in scores_of(runs, "mig"))
        cells.append((changed or "–", f"{steps:,}", f"{images // 1000:,},000", *middle, migs))
    header = ("changed", "steps", "images", "reconstruction, nats", "ELBO, nats", "Modularity", "MIG of each run")
    return markdown_rows(header, cells)


def standard_note() -> str:
    """Return the D-VAE's median MIG at 64x64 for the first finding; an empty text while there are no runs."""
    scores = scores_of(matching(read_runs("standard"), "dsprites", "dvae"), "mig")
    if not scores:
        return ""
    return f" At 64x64, with the preset `standard`, it is {median(scores):.3f} ({len(scores)} seeds)."


def _standard_rules(runs: Sequence[Run]) -> str:
    first = [run for run in runs if (run.number("seed") or 0) < RULE_SEEDS]
    dvae, vae = (scores_of(matching(first, "dsprites", model), "mig") for model in ("dvae", "vae"))
    cells = []
    if dvae and vae:
        paper, ratio = paper_number("dvae", "mig", "dsprites"), median(dvae) / median(vae)
        reached = place(median(dvae), paper) == "within"
        verdict = partial(_verdict, min(len(dvae), len(vae)) >= RULE_SEEDS)
        rule = "dSprites: the median MIG of five D-VAEs is within the paper's quartiles"
        cells.append((rule, f"{median(dvae):.3f}", str(len(dvae)), verdict(reached)))
        rule = f"dSprites: it is at least {RULE_RATIO} times the VAE's"
        cells.append((rule, f"{ratio:.1f} times", f"{len(dvae)} and {len(vae)}", verdict(ratio >= RULE_RATIO)))
    rooms = sorted(matching(first, "rooms", "dvae"), key=lambda run: run.scores["mig"])
    if rooms and OWN_LATENTS in rooms[0].scores:
        own = int(rooms[(len(rooms) - 1) // 2].scores[OWN_LATENTS])
        rule = f"rooms: at least {RULE_FACTORS} of 6 factors have a latent of their own in the median D-VAE"
        verdict_of_rooms = _verdict(len(rooms) >= RULE_SEEDS, own >= RULE_FACTORS)
        cells.append((rule, f"{own} factors", str(len(rooms)), verdict_of_rooms))
    return markdown_rows(("rule", "here", "runs", "verdict"), cells)


def _verdict(enough: bool, is_met: bool) -> str:
    return ("reached" if is_met else "not reached") + ("" if enough else " so far, with fewer runs than the rule takes")
