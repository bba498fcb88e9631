import pytest

from lddr.report.groups import collect


@pytest.fixture
def groups(make_run):
    """D-VAE on dSprites: MIG 10, 20, 40 % with gaps 3, 1, 2; FactorDVAE: 30 and 50 % with gaps 9 and 8; VAE: 25 %."""
    dvae = [(0.1, 3.0), (0.2, 1.0), (0.4, 2.0)]
    runs = [make_run("dvae", "dsprites", seed, {"mig": m, "gap": g, "sap": m / 10}) for seed, (m, g) in enumerate(dvae)]
    factor = [(0.3, 9.0), (0.5, 8.0)]
    runs += [make_run("factor-dvae", "dsprites", seed, {"mig": m, "gap": g}) for seed, (m, g) in enumerate(factor)]
    return collect([*runs, make_run("vae", "dsprites", 0, {"mig": 0.25})]).groups
