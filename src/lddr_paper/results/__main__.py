"""The results of the repository, from tables of runs.

python -m lddr_paper.results gather runs/results   add the runs of a folder to the tables, and draw what needs models
python -m lddr_paper.results                       generate the page and its figures from the tables
python -m lddr_paper.results check                 check that the page is what the tables give
"""

import sys
from difflib import unified_diff
from pathlib import Path

from lddr.files import written_whole
from lddr.metrics.metric import metrics
from lddr.runs.index import list_runs
from lddr_paper.results import figures, selection
from lddr_paper.results.page import STUDIES, page, study_of
from lddr_paper.results.tables import RESULTS, add_long, add_runs, borrow_rows, measure_costs


def gather(folder: Path) -> None:
    """Add the finished runs of a folder to the tables of the studies that they belong to."""
    found = list_runs(folder)
    add_long(found)
    trained = [run for run in found if run.state == "finished"]
    planned = {name: study_of(name) for name in STUDIES}
    for name, study in planned.items():
        wanted = {metric for metric in study.metrics if metrics[metric].needs != "model"} | {"mig"}
        names = {config.run_name for config in study.configs}
        runs = [run for run in trained if run.name in names and wanted <= run.scores.keys()]
        print(f"{name}: {add_runs(name, runs) if runs else 0} of {len(study.configs)} runs")
        borrow_rows(name, [other for other in planned if other != name], names, wanted)
    measure_costs(config for study in planned.values() for config in study.configs)
    selection.gather(trained)
    figures.draw_from_models(trained)


def main(arguments: list[str]) -> int:
    """Run one of the three commands; `check` returns 1 if the page differs."""
    path = RESULTS / "README.md"
    if arguments == ["check"]:
        old, new = path.read_text(encoding="utf-8"), page()
        sys.stdout.writelines(
            unified_diff(old.splitlines(True), new.splitlines(True), "results/README.md", "generated")
        )
        return int(old != new)
    if arguments[:1] == ["gather"]:
        gather(Path(arguments[1]))
    figures.draw_from_tables()
    with written_whole(path) as draft:
        draft.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
