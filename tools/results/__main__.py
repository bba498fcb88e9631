"""The results of the repository, from tables of runs.

python tools/results gather runs/results   add the runs of a folder to the tables, and draw what needs their models
python tools/results                       make the page and its figures from the tables
python tools/results check                 say whether the page is what the tables give
"""

import sys
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path

import costs
import figures
import long
import pools
from page import PAGE, STUDIES, page
from table import keep

from lddr.config import Config
from lddr.files import written_whole
from lddr.runs.index import list_runs
from lddr.sweeps.study import read_study


def gather(folder: Path) -> None:
    there = list_runs(folder)
    long.gather(there)
    trained = [run for run in there if run.state == "finished"]
    runs = {run.name: run for run in trained if "mig" in run.scores}
    configs = {study: _configs(command) for study, command in STUDIES.items()}
    for study, own in configs.items():
        found = [runs[config.run_name] for config in own if config.run_name in runs]
        print(f"{study}: {keep(study, found) if found else 0} of {len(own)} runs")
    costs.measure(config for own in configs.values() for config in own)
    pools.gather(trained)  # the scores of one that is trained again are in the tables
    figures.from_models(trained)


def _configs(command: str) -> Sequence[Config]:
    words = command.split()
    return read_study(words[2], "quick" if "--scale" in words else "full").configs


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["gather"]:
        gather(Path(arguments[1]))
    text = page()
    if arguments == ["check"]:
        old = PAGE.read_text(encoding="utf-8")
        sys.stdout.writelines(
            unified_diff(old.splitlines(True), text.splitlines(True), "results/README.md", "made anew")
        )
        return int(old != text)
    with written_whole(PAGE) as draft:
        draft.write_text(text, encoding="utf-8")
    figures.from_tables()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
