"""The results of the repository, from tables of runs.

python -m lddr_paper.results gather runs/results   add the runs of a folder to the tables, and draw what needs models
python -m lddr_paper.results                       generate the pages and their figures from the tables
python -m lddr_paper.results check                 check that the pages are what the tables give
"""

import sys
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path

from lddr.files import written_whole
from lddr.metrics.metric import metrics
from lddr.runs.index import Run, list_runs
from lddr.sweeps.study import Study
from lddr_paper.results import figures, selection
from lddr_paper.results.pages import STUDIES, pages, study_of
from lddr_paper.results.tables import RESULTS, add_long, add_runs, borrow_rows, measure_costs


def gather(folder: Path) -> None:
    """Add the finished runs of a folder to the tables of the studies that they belong to.

    A study may be unfinished: its runs that are scored so far are added, and later ones when this is called again.
    """
    found = list_runs(folder)
    add_long(found)
    trained = [run for run in found if run.state == "finished"]
    planned = {name: study_of(name) for name in STUDIES}
    for name, study in planned.items():
        _add(name, study, trained)
        borrow_rows(name, [other for other in planned if other != name], _names(study), _scores(study))
    for preset, names in {"quick": set(STUDIES) - {"standard", "tuning"}, "standard": {"standard"}}.items():
        measure_costs(preset, (config for name in sorted(names) for config in planned[name].configs))
    selection.gather(trained)
    figures.draw_from_models(trained)


def _names(study: Study) -> set[str]:
    return {config.run_name for config in study.configs}


def _scores(study: Study) -> set[str]:
    """Return the scores that a run must have to be added."""
    return {metric for metric in study.metrics if metrics[metric].needs != "model"} | {"mig"}


def _add(name: str, study: Study, trained: Sequence[Run]) -> None:
    own = [run for run in trained if run.name in _names(study)]
    scored = [run for run in own if _scores(study) <= run.scores.keys()]
    print(f"{name}: {add_runs(name, scored) if scored else 0} of {len(study.configs)} runs")
    for run in own:
        if missing := _scores(study) - run.scores.keys():
            print(f"  {run.name} is left out until it is scored by {', '.join(sorted(missing))}")


def main(arguments: list[str]) -> int:
    """Run one of the three commands; `check` returns 1 if a page differs."""
    if arguments == ["check"]:
        differs = False
        for path, new in pages().items():
            old = (RESULTS / path).read_text(encoding="utf-8") if (RESULTS / path).exists() else ""
            sys.stdout.writelines(
                unified_diff(old.splitlines(True), new.splitlines(True), f"results/{path}", "generated")
            )
            differs |= old != new
        return int(differs)
    if arguments[:1] == ["gather"]:
        gather(Path(arguments[1]))
    selection.write_correlations()
    figures.draw_from_tables()
    for path, text in pages().items():
        with written_whole(RESULTS / path) as draft:
            draft.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
