"""The results of the repository, from tables of runs.

python tools/results gather runs/results   add the runs of a folder to the tables, and draw what needs their models
python tools/results                       make the page and its figures from the tables
python tools/results check                 say whether the page is what the tables give
"""

import sys
from difflib import unified_diff
from pathlib import Path

import costs
import figures
import long
import pools
from page import PAGE, STUDIES, page, study_of
from table import borrow, keep

from lddr.files import written_whole
from lddr.metrics.metric import metrics
from lddr.runs.index import list_runs


def gather(folder: Path) -> None:
    there = list_runs(folder)
    long.gather(there)
    trained = [run for run in there if run.state == "finished"]
    runs = {run.name: run for run in trained if "mig" in run.scores}
    planned = {name: study_of(command) for name, command in STUDIES.items()}
    for name, study in planned.items():
        wanted = {metric for metric in study.metrics if metrics[metric].needs != "model"}  # a gap, not all models have
        names = {config.run_name for config in study.configs}
        found = [run for run in runs.values() if run.name in names and wanted <= run.scores.keys()]
        print(f"{name}: {keep(name, found) if found else 0} of {len(study.configs)} runs")
        borrow(name, [other for other in planned if other != name], names, wanted)
    costs.measure(config for study in planned.values() for config in study.configs)
    pools.gather(trained)  # the scores of one that is trained again are in the tables
    figures.from_models(trained)


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["gather"]:
        gather(Path(arguments[1]))
    if arguments != ["check"]:
        figures.from_tables()
    text = page()
    if arguments == ["check"]:
        old = PAGE.read_text(encoding="utf-8")
        sys.stdout.writelines(
            unified_diff(old.splitlines(True), text.splitlines(True), "results/README.md", "made anew")
        )
        return int(old != text)
    with written_whole(PAGE) as draft:
        draft.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
