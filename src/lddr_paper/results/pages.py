"""The pages below results/: templates with tables and numbers, none of which is typed by hand."""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import combinations, groupby
from math import log
from statistics import median

from lddr.report.exhibits import markdown_rows
from lddr.report.groups import scores_of
from lddr.report.style import dataset_title, metric_title, model_title
from lddr.runs.index import Run
from lddr.sweeps.study import Study, read_study
from lddr_paper.claims import claims
from lddr_paper.judging import INCONCLUSIVE, SUPPORTED, Claim, Estimate, Judgement, Measured, judge, matching
from lddr_paper.results import against_paper, discrete, selection
from lddr_paper.results.explanations import EXPLANATIONS, Blocks, as_many_latents_as_factors
from lddr_paper.results.tables import INFORMATION, LOGGED, LONG_SCORES, RESULTS, read_costs, read_long, read_runs

STUDIES = (
    *("circles", "families", "penalties", "labels", "ties"),
    *("beginnings", "brightness", "discrete", "efficiency", "choice", "tuning", "standard"),
)
PAGES = ("README.md", "claims.md", "hypotheses.md", "rules.md", "discrete/README.md", "selection/README.md")
UNITS = {
    "MIG": (3, "", "+"),
    "cases": (3, "", "+"),
    "correlation": (2, "", "+"),
    "degrees": (1, "°", "+"),
    "%": (0, " %", ""),
}
INTERVAL = re.compile(r"\([+−]?[\d.]+ to [+−]?[\d.]+\)")


def pages() -> dict[str, str]:
    """Return every page by its path below results/."""
    judged = {name: one for name, claim in claims().items() if (one := judge(claim, read_runs))}
    parts = {
        "waiting": _waiting(judged),
        "standard": against_paper.standard_section(),
        "time_table": against_paper.time_table(),
        "runs": _runs(),
        "trained_again": _trained_again(),
        "long": _long(),
        "initialisers": initialisers_table(),
    }
    for side in ("paper", "our"):
        own = {name: one for name, one in judged.items() if bool(one.claim.paper) == (side == "paper")}
        parts[f"{side}_claims"] = claims_table(list(own.values()))
        parts[f"{side}_sections"] = "\n\n".join(_section(name, one) for name, one in own.items())
    parts |= against_paper.lead() | _numbers(judged) | discrete.sections() | selection.sections()
    texts = {path: _template(path).format_map(parts | {"intervals": "{intervals}"}) for path in PAGES}
    intervals = sum(len(INTERVAL.findall(text)) for text in texts.values()) + selection.num_correlations()
    texts = {path: text.replace("{intervals}", f"{intervals:,}") for path, text in texts.items()}
    return {path: re.sub(r"\n{3,}", "\n\n", text).strip() + "\n" for path, text in texts.items()}


def _template(path: str) -> str:
    name = path.removesuffix("/README.md").removesuffix(".md") + ".md"
    return (files("lddr_paper.results") / "templates" / name).read_text(encoding="utf-8")


def study_of(name: str) -> Study:
    return read_study(RESULTS / name / "study.toml")


def _numbers(judged: Mapping[str, Judgement]) -> dict[str, str]:
    """Return single numbers of the texts."""
    angles = {one.case.labels[0]: one.medians[0] for one in judged["circles_parallel"].found["ignoring bends"]}
    bias = {one.case.scores[0]: one.medians for one in judged["brightness"].found[""]}
    usual = matching(read_runs("families"), "dsprites", "dvae")[0]
    costs, with_labels = read_costs(), judged["labels"].found[""]
    verdicts = Counter(verdict for one in judged.values() for verdict in one.verdicts.values())
    return {
        "verdict_counts": ", ".join(
            f"{count} {verdict}".replace(SUPPORTED, f"reproduced or {SUPPORTED}")
            for verdict, count in verdicts.most_common()
        ),
        "long_steps": f"{max(int(rows[-1]['step']) for rows in read_long().values()):,}",
        "dvae_degrees": f"{angles['D-VAE']:.0f}",
        "vae_degrees": f"{angles['VAE']:.0f}",
        "lead_growth": _value(judged["brightness_lead"].claim, judged["brightness_lead"].found[""][-1]),
        "labels_gain": _value(judged["some_labels"].claim, judged["some_labels"].found[""][0]),
        "labels_lead": _value(judged["labels"].claim, with_labels[-1]),
        "labels_same_latents": as_many_latents_as_factors().text(),
        "first_kl": f"{bias['kl.first'][0]:.0f}",
        "first_kl_bias": f"{bias['kl.first'][1]:.0f}",
        "largest_kl": f"{(usual.number('num_latents') or 0) * log(usual.number('num_categories') or 1):.0f}",
        "ms_tc": f"{costs['tc-dvae']:.0f}",
        "ms_factor": f"{costs['factor-dvae']:.0f}",
    }


# ---- Claims


def text_of(claim: Claim, estimate: Estimate) -> str:
    return estimate.text(*UNITS[claim.axis])


def _value(claim: Claim, one: Measured) -> str:
    return text_of(claim, one.estimate).split(" (")[0]


def cases_won(found: Sequence[Measured]) -> tuple[int, int]:
    return sum(one.estimate.value > 0 for one in found), len(found)


def counted(found: Sequence[Measured]) -> dict[str, Measured]:
    """Return the cases that count, by what distinguishes them; "" if there is only one."""
    cases = [one for one in found if one.case.counts]
    places = [
        place for place, names in enumerate(zip(*(one.case.labels for one in cases), strict=True)) if len({*names}) > 1
    ]
    return {", ".join(one.case.labels[place] for place in places): one for one in cases}


def finding(one: Judgement) -> str:
    """Return the heading of a claim with its numbers; raise if it was written for other verdicts."""
    claim = one.claim
    if list(one.verdicts.values()) != list(claim.verdicts):
        raise ValueError(f"reword the finding of {claim.title!r} in claims.toml: its verdicts are {one.verdicts}")
    if claim.axis == "cases":
        return claim.finding.format(*("{} of {}".format(*cases_won(some)) for some in one.found.values()))
    values = [_value(claim, case) for some in one.found.values() for case in counted(some).values()]
    return claim.finding.format(*values, sizes=[value.lstrip("+−") for value in values])


def word(claim: Claim, verdict: str) -> str:
    """Return the verdict in the words of the pages: what supports a claim of the paper reproduces it."""
    return "reproduced" if verdict == SUPPORTED and claim.paper else verdict


def verdict_text(claim: Claim, verdict: str, cases: Sequence[Measured]) -> str:
    """Return the verdict in bold; an inconclusive one with the smallest effect that could have been seen."""
    if verdict != INCONCLUSIVE:
        return f"**{word(claim, verdict)}**"
    digits, unit, _ = UNITS[claim.axis]
    return f"**{verdict}** (±{max(one.estimate.half_width for one in cases):.{digits}f}{unit})"


def claims_table(judged: Sequence[Judgement]) -> str:
    """Return a row for each variant of each claim: what the paper says, what the runs say, and the verdict."""
    with_paper = any(one.claim.paper for one in judged)
    cells = []
    for one in judged:
        claim = one.claim
        named = [claim.title, *[str(claim.paper)] * with_paper]
        for variant, found in one.found.items():
            cases = counted(found)
            here = _labelled({label: _with_percent(claim, case) for label, case in cases.items()})
            if claim.axis == "cases":
                here = "in {} of {} cases".format(*cases_won(found))
            runs = "; ".join(dict.fromkeys(case.count for case in cases.values()))
            cells.append(
                (*named, variant, here, runs, verdict_text(claim, one.verdicts[variant], list(cases.values())))
            )
            named = [""] * len(named)
    return markdown_rows(
        ("claim", *["paper"] * with_paper, "condition", "here (95 % interval)", "runs", "verdict"), cells
    )


def _with_percent(claim: Claim, one: Measured) -> str:
    text = text_of(claim, one.estimate)
    return f"{text}, {one.percent:+.0f} %".replace("-", "−") if claim.in_percent else text


def _labelled(texts: Mapping[str, str]) -> str:
    return "; ".join(f"{label}: {text}" if label else text for label, text in texts.items())


def _section(name: str, one: Judgement) -> str:
    claim = one.claim
    tables: Blocks = []
    for variant, some in one.found.items() if claim.crossed or claim.table else ():
        tables += [f"**{variant}**"] * bool(variant) + [(_crossed if claim.crossed else _compared)(claim, some)]
    verdicts = {
        variant: verdict_text(claim, one.verdicts[variant], list(counted(some).values()))
        for variant, some in one.found.items()
    }
    source = f"The paper: {claim.paper}." if claim.paper else "Our hypothesis."
    about = f"Tested: *{claim.title}*. {source} Verdict: {_labelled(verdicts)}."
    why = [claim.why.strip()] if claim.why else []
    explained = EXPLANATIONS[name](read_runs) if name in EXPLANATIONS else []
    pictures = [f"![{shown}]({file})" for file, shown in claim.pictures.items()]
    return "\n\n".join([f"## {finding(one)}", about, *(tables or [claims_table([one])]), *why, *explained, *pictures])


def _compared(claim: Claim, found: Sequence[Measured]) -> str:
    """Return a row for each case: its labels, the medians of its groups, the estimate, the runs and the verdict."""
    cells = []
    for one in found:
        medians = [f"{value:.{claim.median_digits}f}" for value in one.medians] if claim.medians else []
        row = [*one.case.labels, *medians, text_of(claim, one.estimate)]
        if len(row) == len(claim.table):  # a lead that grows has more groups, and no row
            cells.append(row + [one.count, word(claim, one.verdict)] * claim.judged)
    return markdown_rows([*claim.table, *["runs", "verdict"] * claim.judged], cells)


def _crossed(claim: Claim, found: Sequence[Measured]) -> str:
    texts = {one.case.labels: text_of(claim, one.estimate) for one in found}
    names, columns = (list(dict.fromkeys(labels[place] for labels in texts)) for place in (0, 1))
    runs = {name: max(len(one.runs[0]) for one in found if one.case.labels[1] == name) for name in columns}
    cells = [(name, *(texts.get((name, column), "–") for column in columns)) for name in names]
    return markdown_rows((claim.crossed, *(f"{name}, {count} runs" for name, count in runs.items())), cells)


def _waiting(judged: Mapping[str, Judgement]) -> str:
    missing = [claim.title for name, claim in claims().items() if name not in judged]
    return f"No runs yet to judge: {'; '.join(missing)}." if missing else ""


# ---- Runs


def _runs() -> str:
    cells = []
    for study in STUDIES:
        about = tomllib.loads((RESULTS / study / "study.toml").read_text(encoding="utf-8"))["about"]
        types = ((str(run.value("dataset")), str(run.value("model"))) for run in read_runs(study))
        counts = Counter((dataset_title(dataset), model_title(model)) for dataset, model in types)
        each = "; ".join(
            f"{dataset}: " + ", ".join(f"{count} {model}" for (_, model), count in some)
            for dataset, some in groupby(sorted(counts.items()), key=lambda item: item[0][0])
        )
        done = f"{counts.total()} of {len(study_of(study).configs)}"
        linked = f"[{study}]({study}/scores.csv)" if counts else f"[{study}]({study}/study.toml)"
        cells.append((f"{linked}: {about}", done, each))
    return markdown_rows(("study", "runs, of those planned", "of which"), cells)


def _trained_again() -> str:
    """Return the scores of runs before they were trained again: the same seed on another processor differs."""
    types: dict[tuple[str, str, str], list[Run]] = {}
    before = {run.name: (study, run) for study in reversed(STUDIES) for run in read_runs(f"{study}/replaced.csv")}
    for study, run in before.values():
        types.setdefault((study, str(run.value("dataset")), str(run.value("model"))), []).append(run)
    lines = []
    for (study, dataset, model), old in types.items():
        names = {run.name for run in old}
        now = [run for run in read_runs(study) if run.name in names]
        medians = " and ".join(f"{median(scores_of(runs, 'mig')):.3f}" for runs in (old, now))
        named = f"{model_title(model)} on {dataset_title(dataset)}, {len(old)} runs"
        lines.append(f"- {named}: median MIG {medians} ([first]({study}/replaced.csv))")
    return "\n".join(lines)


# ---- Long runs


def _long() -> str:
    cells = []
    for (model, weights), steps in read_long().items():
        last = steps[-1]
        scores = [f"{float(last[name]):.3f}" for name in LONG_SCORES]
        nats = [f"{float(last[name]):.1f}" if name in last else "–" for name in (*LOGGED, INFORMATION)]
        cells.append((model_title(model), weights, f"{int(last['step']):,}", *scores, *nats))
    nats_header = ("reconstruction error", "KL", "information")
    return markdown_rows(
        ("model", "initial weights", "steps so far", *map(metric_title, LONG_SCORES), *nats_header), cells
    )


def initialisers_table() -> str:
    """Return the scores by initialisation of the weights, at the first and the last steps that both have reached."""
    found, cells = read_long(), []
    for model in sorted({model for model, _ in found}):
        both = list(zip(found.get((model, "truncated"), ()), found.get((model, "uniform"), ()), strict=False))
        seeds = scores_of(matching(read_runs("families"), "dsprites", model), "mig")
        for pair in (both[0], both[-1]) if len(both) > 1 else ():
            first, second = (float(one["mig"]) for one in pair)
            apart = median(abs(a - b) for a, b in combinations(seeds, 2))
            steps = " and ".join(f"{int(one['step']):,}" for one in pair)
            losses = " and ".join(f"{sum(float(one[name]) for name in LOGGED):.1f}" for one in pair)
            numbers = (f"{value:.3f}" for value in (first, second, abs(second - first), apart))
            cells.append((model_title(model), steps, *numbers, losses))
    header = ("model", "steps", "truncated", "uniform", "difference", "difference of two seeds", "losses")
    return markdown_rows(header, cells)
