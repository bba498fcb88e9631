"""The page of the results, from the tables beside it alone: no number is typed by hand."""

import tomllib
from collections import Counter
from importlib import import_module
from statistics import median

from claims import Claim, NotYetError, judges
from estimates import CONFIDENCE, FEWEST, RESAMPLES
from kinds import told as kinds_told
from long import told as long_told
from selection import told as selection_told
from table import RESULTS, read, replaced, scores_file

from lddr.report.groups import scores_of
from lddr.report.style import dataset_title, model_title
from lddr.runs.index import Run
from lddr.sweeps.study import Study, read_study

PAGE = RESULTS / "README.md"
CLAIMS = (
    "claims_circles",
    "claims_models",
    "claims_gap",
    "claims_labels",
    "claims_learning",
)  # in the order of the page
SHIPPED = RESULTS.parent / "studies"
STUDIES = {
    "circles": "lddr sweep results/circles/study.toml --out runs/results",
    "families": "lddr sweep results/families/study.toml --out runs/results",
    "penalties": "lddr sweep results/penalties/study.toml --out runs/results",
    "labels": "lddr sweep results/labels/study.toml --out runs/results",
    "ties": "lddr sweep results/ties/study.toml --out runs/results",
    "beginnings": "lddr sweep results/beginnings/study.toml --out runs/results",
    "brightness": "lddr sweep results/brightness/study.toml --out runs/results",
    "discrete": "lddr sweep results/discrete/study.toml --out runs/results",
    "efficiency": "lddr sweep results/efficiency/study.toml --out runs/results",
    "choice": "lddr sweep results/choice/study.toml --out runs/results",
}
INTRODUCTION = """\
# Results

The paper's claims, held against runs of our own. They are the `quick` preset (small networks at 32x32, 2 000 steps on
`circles` and 10 000 on `dsprites` and `rooms`, against the paper's 64x64 and 300 000 steps) on one core: what is shown
here is shown for small models trained briefly; what is not may still be true of large ones trained long. Four have
[the paper's own settings](#with-the-papers-own-settings), as far as they have got.

The [rules](#rules) of judgement were fixed before looking, and it is said where they were not. The page is made by
`python tools/results` from the tables beside it, a row for each run; `python tools/results gather runs/results` adds
the runs of a folder to them."""
AGAIN = """\
Runs that were trained a second time on another processor, with the same seeds, because their codes and some scores had
not been kept: the median MIG before, and of those that count now."""
RULES = f"""\
## Rules
They were fixed before the runs were looked at, but where [the last section](#what-had-been-seen-before-a-rule) says
otherwise. The tables are looked at while runs are added; how many there are so far was decided by the time at hand.

- A difference is one of medians over runs; its interval holds {CONFIDENCE:.0%} of {RESAMPLES:,} resamples of the runs.
- **shown**: the whole interval is on the claim's side. **the opposite**: the whole interval is on the other.
  **not shown**: neither. **too few runs**: fewer than {FEWEST} of a kind.
- Shares of runs have Wilson's interval; rank correlations are Spearman's.
- A claim about several datasets, or numbers of labels, has a verdict if they all have the same, else it is not shown.
- Cases won: shown if at least as large a share is won as in the paper, the opposite if more are lost than won.
- With a few labels the better of the VAE's two losses, by median, is the D-VAE's rival.
- The angle of a latent grid on `circles` is the root mean square angle of its lines with an axis of their own; a grid
  within 10° is parallel to the axes, and that is what the verdict is about. Lines that bend count as turned by it; in
  the angle of the plane that fits a grid best, bends do not count."""
SEEN = """\
## What had been seen before a rule
- The first seeds on `dsprites` (0 to 4 of VAE and TC-DVAE) and `circles` (0 to 3), by which the quick presets were
  chosen.
- Eleven grids of each family on `circles` before the angle of the plane that fits a grid best was added.
- Claims about decoders that begin at the images' mean brightness are ours, and came from looking for the reason why the
  D-VAE's lead on `dsprites` is small: the runs they are compared with had been seen, and the KL of the first 1 500
  steps of three others. Of the sixteen with that beginning, eight had been seen when the gain in percent was put
  beside the paper's; the D-VAE's own gain was not shown by seven seeds, was by eight, and is not by the ten that were
  planned. That they are also held against the paper's cases won came when the medians of these sixteen had been seen.
- FactorVAE, FactorDVAE (γ = 10) and TC-DVAE are tried with that beginning since ten FactorDVAEs had been seen without
  it, of whose latents many give nearly all images one category.
- How a D-VAE is trained was judged over all datasets at once, and shown, until twenty runs on `dsprites` were there;
  then by dataset, as the rules say. How weights begin is held against all runs of families since then.
- That all models on `dsprites` begin at the mean brightness where kinds of discreteness are compared was decided when
  five peers had been seen without it: of two FSQs one had learned nothing. That FSQ begins there on `rooms`, too, came
  when all its runs without it had been seen, of which two of five had learned nothing. None of these runs counts.
- With labels, `ω` weighs the risk of the labelled batch since four runs (seed 0 of each kind, 1 000 labels) had been
  seen in which it weighed that of one image, and which hardly heeded their labels. They do not count. What is taken
  away from the masked D-VAE in `ties` was chosen when the twenty runs with 1 000 labels and six with 100 had been seen.
- That a best selector takes 50 models on each of three datasets to be named was said when there were fifty on Circles.
  The claims about the gap count the D-VAEs and FactorDVAEs of `choice` on `rooms`, too, since the regrets of selectors
  there had been seen.
- Models whose decoders begin at the mean brightness are among those to choose from, instead of ten TC-DVAEs with β = 2
  and 8 that had been planned, since 21 others on `dsprites` had been seen."""


def page() -> str:
    """The whole of it."""
    for module in CLAIMS:
        import_module(module)
    judged, waiting = [], []
    for judge in sorted(judges, key=lambda judge: CLAIMS.index(judge.__module__)):
        try:
            judged.append(judge())
        except NotYetError:
            waiting.append(judge.__name__.replace("_", " "))
    parts = [
        INTRODUCTION,
        _verdicts(judged, waiting),
        _runs(),
        RULES,
        *(_section(claim) for claim in judged if claim.details),
    ]
    parts += [*long_told(), *kinds_told(), *selection_told(), SEEN]
    return "\n\n".join(parts) + "\n"


def _runs() -> str:
    lines = ["## Runs", "| study | runs so far, of those planned | command |", "| --- | --- | --- |"]
    for study, command in STUDIES.items():
        counts = Counter((str(run.value("dataset")), str(run.value("model"))) for run in read(study))
        if counts:
            told = ", ".join(f"{count} {model} on {dataset}" for (dataset, model), count in sorted(counts.items()))
            done = f"{sum(counts.values())} of {len(study_of(command).configs)}: {told}"
            lines.append(f"| [{study}]({study}/scores.csv): {_about(study)} | {done} | `{command}` |")
    return "\n".join([lines[0], "", *lines[1:], *_trained_again()])


def _trained_again() -> list[str]:
    """What runs had before that were trained a second time: the same seed on another processor is another model."""
    before = {run.name: (study, run) for study in reversed(STUDIES) for run in replaced(study)}
    kinds: dict[tuple[str, str, str], list[Run]] = {}
    for study, run in before.values():
        kinds.setdefault((study, str(run.value("dataset")), str(run.value("model"))), []).append(run)
    lines = []
    for (study, dataset, model), old in kinds.items():
        names = {run.name for run in old}
        now = [run for run in read(study) if run.name in names]
        medians = " and ".join(f"{median(scores_of(runs, 'mig')):.3f}" for runs in (old, now))
        told = f"{model_title(model)} on {dataset_title(dataset)}, {len(old)} runs: {medians}"
        lines.append(f"- {told} ([the first]({study}/replaced.csv))")
    return ["", AGAIN, "", *lines] if lines else []


def study_of(command: str) -> Study:
    """The study that a command carries out."""
    words = command.split()
    return read_study(words[2], "quick" if "--scale" in words else "full")


def _about(study: str) -> str:
    own = scores_file(study).with_name("study.toml")
    return tomllib.loads((own if own.exists() else SHIPPED / f"{study}.toml").read_text())["about"]


def _verdicts(judged: list[Claim], waiting: list[str]) -> str:
    lines = ["## Verdicts", "", "| claim | paper | here | verdict |", "| --- | --- | --- | --- |"]
    lines += [f"| {claim.title} | {claim.paper} | {claim.seen} | **{claim.verdict}** |" for claim in judged]
    if waiting:
        lines += ["", f"No runs yet to judge: {', '.join(waiting)}."]
    return "\n".join(lines)


def _section(claim: Claim) -> str:
    shown = [name for name in claim.pictures if (RESULTS / name).exists()]
    pictures = [line for name in shown for line in ("", f"![{claim.title}]({name})")]
    return "\n".join([f"### {claim.title}", "", *claim.details, *pictures])
