import json

from lddr.report.groups import collect
from lddr.report.pages import setup_table


def test_settings_say_where_the_images_come_from(make_run):
    runs = [make_run("dvae", "dsprites", seed, {"mig": 0.1}) for seed in range(3)]
    for run, origin in zip(runs, ("redrawn", "official file", "redrawn"), strict=True):
        content = json.loads((run.folder / "config.json").read_text())
        content["dataset"]["origin"] = origin
        (run.folder / "config.json").write_text(json.dumps(content))
    (group,) = collect(runs).groups  # comparable
    assert ("images are", "redrawn (2), official file (1)") in setup_table([group]).rows
    (old,) = collect([make_run("vae", "rooms")]).groups
    assert ("images are", "of unknown origin") in setup_table([old]).rows
