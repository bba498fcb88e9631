"""How many codes a discrete model uses: perplexity, used and dead categories, dead codebook entries."""

import math

import pytest
import torch

import lddr
from lddr import losses
from lddr.cli import main
from lddr.report.pages import write_card
from lddr.runs.index import code_rows, read_run
from lddr.training.collapse import code_usage

# of 4 images: latent 0 has category 0 always, latent 1 has 0 twice, 1 and 3
CATEGORIES = torch.tensor([[0, 0], [0, 0], [0, 1], [0, 3]])
ENTROPY = 0.5 * math.log(2) + 2 * 0.25 * math.log(4)


def test_usage_of_a_hand_worked_case():
    usage = code_usage(lddr.latents.Categorical(num_latents=2, num_categories=4), CATEGORIES)
    assert usage.pop("perplexity") == pytest.approx((1 + math.exp(ENTROPY)) / 2)
    assert usage == {
        "used": 2.0,
        "dead": 4,
        "perplexity_per_latent": [1.0, round(math.exp(ENTROPY), 4)],
        "used_per_latent": [1, 3],
        "dead_per_latent": [3, 1],
    }


def test_the_perplexity_of_a_uniform_distribution_is_its_number_of_categories():
    categories = torch.arange(24)[:, None] % torch.tensor([8, 3, 1])
    assert losses.perplexity(losses.category_counts(categories, 8)).tolist() == pytest.approx([8, 3, 1])


def test_masked_categories_are_not_dead():
    latent = lddr.latents.Categorical(num_latents=2, num_categories=4)
    latent.active[0, 1:] = False
    assert code_usage(latent, CATEGORIES)["dead_per_latent"] == [0, 1]


@pytest.mark.parametrize(
    ("latent", "dead"),
    [
        (lddr.latents.Codebook(2, 4), 1),  # one list of values for all latents: 2 is never taken
        (lddr.latents.VectorQuantised(2, 4), 1),
        (lddr.latents.VectorQuantised(2, 4, shared_codebook=False), 4),  # product: a codebook for each latent
        (lddr.latents.VectorQuantised(2, 4, residual_levels=2), 4),  # residual: one for each level
    ],
    ids=["codebook", "shared", "product", "residual"],
)
def test_entries_of_a_codebook_are_dead_if_no_latent_uses_them(latent, dead):
    assert code_usage(latent, CATEGORIES)["dead_entries"] == dead


@pytest.mark.parametrize("settings", [{"latent": "fsq", "bound": "sigmoid"}, {"latent": "gaussian"}], ids=str)
def test_a_run_reports_the_codes_it_uses_if_it_is_discrete(settings, tmp_path, capsys, monkeypatch):
    machine = lddr.Machine("cpu", threads=1, quiet=True)
    settings |= {"objective": "elbo", "resolution": 16, "width": 4, "steps": 2, "batch_size": 8, "num_latents": 3}
    run = read_run(lddr.train("circles", out=tmp_path, machine=machine, **settings).folder)
    rows = code_rows(run)
    monkeypatch.setenv("COLUMNS", "200")
    main(["show", str(run.folder), "--out", str(tmp_path / "page")])
    printed = capsys.readouterr().out
    if settings["latent"] == "gaussian":
        assert not rows
        assert "codes." not in printed
        return
    assert 1 <= run.scores["codes.perplexity"] <= run.scores["codes.used"] <= 12
    assert run.scores["codes.dead"] == 3 * 12 - 3 * run.scores["codes.used"]
    assert len(rows["codes.perplexity_per_latent"].split(", ")) == 3
    page = write_card(run, tmp_path / "card")[0].read_text()
    for text in (printed, page):
        assert all(name in text and row in text for name, row in rows.items())
