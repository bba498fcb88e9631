import base64
import io
import json
import shutil

import numpy as np
import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

import lddr
from lddr.data.load import load_dataset
from lddr.data.pictures import Preparation
from lddr.errors import UserError
from lddr.explorer.open_model import INACTIVE_KL, png
from lddr.explorer.runs import Catalogue
from lddr.explorer.server import LARGEST_BODY, from_upload
from lddr.runs.information import LEAST_SHARE
from tests.explorer.conftest import serving

IMAGES = load_dataset("circles", 16)


def get(address, path, **options):
    return requests.get(f"{address}{path}", timeout=60, **options)


def post(address, path, body, kind="application/json", **options):
    data = json.dumps(body) if kind == "application/json" else body
    return requests.post(f"{address}{path}", data=data, headers={"content-type": kind}, timeout=60, **options)


def picture(content):
    return np.asarray(Image.open(io.BytesIO(content)))


def from_url(text):
    return picture(base64.b64decode(text.removeprefix("data:image/png;base64,")))


def as_png(array, kind="PNG"):
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, kind)
    return buffer.getvalue()


def test_every_run_is_listed_with_its_values_and_no_path(address, root):
    table = get(address, "/api/runs").json()
    columns = [column["name"] for column in table["columns"]]
    rows = {row["name"]: dict(zip(columns, row["values"], strict=True)) for row in table["runs"]}
    assert set(rows) == {"dvae", "vae", "masked", "unfinished"}
    assert rows["unfinished"]["state"] == "training"
    assert rows["dvae"]["mig"] is not None
    assert rows["vae"]["gap"] is None
    assert str(root.parent) not in get(address, "/api/runs").text


def test_a_model_is_described_by_its_latents_and_its_factors(address, tokens):
    model = get(address, f"/api/runs/{tokens['masked']}/model").json()
    sizes = {latent["number"]: len(latent["values"]) for latent in model["latents"]}
    assert sizes == {0: 40, 1: 40, 2: 64}  # x and y have 40 values, the third latent is free
    assert [factor["name"] for factor in model["dataset"]["factors"]] == ["x", "y"]
    assert model["dataset"]["factors"][0]["labels"][0] == "0.2"
    assert "lddr evaluate RUN --metrics mig" in model["unnamed"]
    active = [latent["kl"] >= INACTIVE_KL for latent in model["latents"]]
    assert active == sorted(active, reverse=True)


def test_latents_are_called_after_the_factor_with_the_most_information(address, tokens, root):
    found = json.loads((root / "dvae/scores.json").read_text())["metrics"]["mig"]
    shares = np.array(found["mutual_information"]) / np.array(found["entropies"])
    model = get(address, f"/api/runs/{tokens['dvae']}/model").json()
    for latent in model["latents"]:
        best = shares[latent["number"]]
        assert latent["factor"] == (("x", "y")[best.argmax()] if best.max() >= LEAST_SHARE else None)
        assert list(latent["shares"].values()) == pytest.approx(best.tolist())


@pytest.mark.parametrize("name", ["dvae", "vae", "masked"])
def test_an_image_is_seen_as_the_model_sees_it(address, tokens, root, name):
    model = lddr.Trained.load(root / name)
    seen = post(address, f"/api/runs/{tokens[name]}/encode", {"index": 777}).json()
    image = IMAGES.images([777])
    assert seen["factors"] == [19, 17]
    assert np.array_equal(from_url(seen["picture"]), image[0, :, :, 0])
    assert np.array_equal(from_url(seen["reconstruction"]), np.rint(255 * model.reconstruct(image)[0, :, :, 0]))
    assert seen["values"] == pytest.approx(model.represent(image)[0].tolist(), abs=1e-6)
    if model.is_discrete:
        posterior = model.posterior(image)[0]
        for latent, row in enumerate(seen["probabilities"]):
            assert sum(row) == pytest.approx(1, abs=1e-5)
            assert len(row) == len(model.values_of(latent))
            assert max(row) == pytest.approx(posterior[latent].max(), abs=1e-6)
    else:
        assert np.square(seen["deviations"]) == pytest.approx(model.posterior(image)[0, :, 1], abs=1e-6)


def test_factors_choose_the_image(address, tokens):
    path = f"/api/runs/{tokens['dvae']}/encode"
    assert post(address, path, {"factors": [19, 17]}).json() == post(address, path, {"index": 777}).json()


def test_decode_and_traverse_draw_what_the_model_draws(address, tokens, root):
    model, values = lddr.Trained.load(root / "masked"), [0.25, -0.5, 1.0]
    drawn = picture(post(address, f"/api/runs/{tokens['masked']}/decode", {"values": values}).content)
    assert np.array_equal(drawn, np.rint(255 * model.decode([values])[0, :, :, 0]))
    question = {"values": values, "latent": 1}
    strip = picture(post(address, f"/api/runs/{tokens['masked']}/traverse", question).content)
    codes = np.repeat([values], 40, axis=0)
    codes[:, 1] = model.values_of(1)
    expected = np.rint(255 * model.decode(codes)[..., 0])
    assert np.array_equal(strip, np.concatenate(list(expected), axis=1))
    few = picture(post(address, f"/api/runs/{tokens['masked']}/traverse", question | {"count": 10}).content)
    assert few.shape == (16, 160)
    assert np.array_equal(few[:, :16], strip[:, :16])
    assert np.array_equal(few[:, -16:], strip[:, -16:])


def test_the_latent_space_is_a_grid_of_codes(address, tokens, root):
    space = get(address, f"/api/runs/{tokens['vae']}/space").json()
    codes = np.array(space["codes"])
    assert codes.shape == (14, 14, 2)
    corner = lddr.Trained.load(root / "vae").represent(IMAGES.images([39]))[0]  # x 0, y 39
    assert codes[0, -1] == pytest.approx(corner, abs=1e-3)
    refused = get(address, f"/api/runs/{tokens['masked']}/space")
    assert refused.status_code == 400
    assert "two latents" in refused.json()["message"]


def test_reconstructions_stand_below_their_images(address, tokens, root):
    both = picture(get(address, f"/api/runs/{tokens['vae']}/reconstructions").content)
    assert both.shape == (32, 160)
    expected = lddr.Trained.load(root / "vae").reconstruct(both[:16, :16][np.newaxis, ..., np.newaxis])[0, :, :, 0]
    assert np.abs(both[16:, :16] - 255 * expected).max() <= 0.51


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP"])
def test_an_uploaded_picture_is_brought_to_the_models_size(address, tokens, kind):
    grey = np.kron(IMAGES.images([500])[0, :, :, 0], np.ones((10, 10), np.uint8))
    colours = np.stack([grey] * 3, axis=2)
    answer = post(address, f"/api/runs/{tokens['dvae']}/encode", as_png(colours, kind), f"image/{kind.lower()}")
    seen = from_url(answer.json()["picture"])
    assert seen.shape == (16, 16)
    assert np.abs(seen.astype(int) - IMAGES.images([500])[0, :, :, 0]).mean() < 12
    assert answer.json()["index"] is None


def saved(picture, kind="PNG", **options):
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


@given(arrays(np.uint8, st.sampled_from([(4, 6, 1), (4, 6, 3)])))
def test_a_png_comes_back_as_it_was(picture):
    assert np.array_equal(from_upload(png(picture), Preparation(picture.shape)), picture)


@pytest.mark.parametrize(("colour", "behind"), [(255, 0), (0, 255)])
def test_what_is_transparent_gets_a_colour_that_shows_the_rest(colour, behind):
    picture = Image.new("RGBA", (8, 8), (colour, colour, colour, 0))
    picture.paste((colour, colour, colour, 255), (0, 0, 4, 8))
    seen = from_upload(saved(picture), Preparation((8, 8, 1)))[..., 0]
    assert np.all(seen[:, :4] == colour)
    assert np.all(seen[:, 4:] == behind)


@pytest.mark.parametrize("channels", [1, 3])
def test_every_mode_is_converted_to_the_models_channels(channels):
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        picture = Image.new("L", (9, 5), 255).convert(mode) if mode != "I;16" else Image.new(mode, (9, 5), 65535)
        seen = from_upload(saved(picture), Preparation((16, 16, channels)))
        assert seen.shape == (16, 16, channels)
        assert seen.min() > 250


def test_a_photo_is_rotated_as_its_camera_was_held():
    picture = Image.new("L", (16, 16))
    picture.paste(255, (0, 0, 16, 8))  # the upper half
    rotated = Image.Exif()
    rotated[0x0112] = 3  # upside down
    seen = from_upload(saved(picture, "JPEG", exif=rotated), Preparation((16, 16, 1)))[..., 0]
    assert seen[12].mean() > 200 > 50 > seen[3].mean()


@given(st.binary(max_size=200))
def test_noise_is_refused_in_a_sentence(content):
    for head in (b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"BM", b"RIFF\0\0\0\0WEBP"):
        with pytest.raises(UserError):
            from_upload(head + content, Preparation((16, 16, 1)))


RUBBISH = {
    "no picture": b"hello",
    "empty": b"",
    "half a picture": as_png(np.zeros((64, 64), np.uint8))[:60],
    "another format": as_png(np.zeros((8, 8), np.uint8), "GIF"),
}


@pytest.mark.parametrize("content", RUBBISH.values(), ids=RUBBISH.keys())
def test_rubbish_is_refused_in_a_sentence(address, tokens, content):
    answer = post(address, f"/api/runs/{tokens['dvae']}/encode", content, "image/png")
    assert answer.status_code == 400
    assert "PNG, JPEG, WebP or BMP" in answer.json()["message"]


def test_a_picture_that_would_fill_the_memory_is_refused(address, tokens):
    bomb = as_png(np.zeros((6300, 6300), np.uint8))
    assert len(bomb) < 40_000
    answer = post(address, f"/api/runs/{tokens['dvae']}/encode", bomb, "image/png")
    assert (answer.status_code, "send a smaller one" in answer.text) == (400, True)


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream", "image/svg+xml", "text/html", ""])
def test_other_kinds_of_content_are_refused(address, tokens, kind):
    assert post(address, f"/api/runs/{tokens['dvae']}/encode", b"{}", kind).status_code == 415


def test_too_much_is_not_read(address, tokens):
    path = f"/api/runs/{tokens['dvae']}"
    assert post(address, f"{path}/encode", bytes(LARGEST_BODY + 1), "image/png").status_code == 413
    assert post(address, f"{path}/decode", {"values": [0] * 2_000_000}).status_code == 413


MISTAKES = [
    ("decode", {}),
    ("decode", {"values": [0.0]}),
    ("decode", {"values": [0.0, "1"]}),
    ("decode", {"values": [0.0, True]}),
    ("decode", {"values": [0.0, float("nan")]}),
    ("decode", {"values": [0.0, float("inf")]}),
    ("decode", {"values": [0.0, 1e9]}),
    ("decode", {"values": [0.0, 10**400]}),
    ("decode", {"values": {"0": 1}}),
    ("decode", [0.0, 0.0]),
    ("encode", {}),
    ("encode", {"index": -1}),
    ("encode", {"index": 1600}),
    ("encode", {"index": 10**30}),
    ("encode", {"index": 1.5}),
    ("encode", {"index": "../secret.txt"}),
    ("encode", {"factors": [1]}),
    ("encode", {"factors": [1, 40]}),
    ("encode", {"factors": [1, 10**30]}),
    ("encode", {"factors": [1, [2]]}),
    ("encode", {"factors": "12"}),
    ("traverse", {"values": [0.0, 0.0], "latent": 2}),
    ("traverse", {"values": [0.0, 0.0], "latent": -1}),
    ("traverse", {"values": [0.0, 0.0], "latent": "0"}),
    ("traverse", {"values": [0.0, 0.0], "latent": 0, "count": 10**9}),
]


@pytest.mark.parametrize(("what", "question"), MISTAKES, ids=str)
def test_a_wrong_question_is_answered_with_a_sentence(address, tokens, what, question):
    answer = post(address, f"/api/runs/{tokens['dvae']}/{what}", question)
    assert answer.status_code == 400
    assert answer.json()["message"]


def test_what_is_no_json_is_refused(address, tokens):
    headers = {"content-type": "application/json"}
    for body in (b"{", b"\xff\xfe", b"[" * 50_000, b"1"):
        assert (
            requests.post(f"{address}/api/runs/{tokens['dvae']}/decode", body, headers=headers, timeout=60).status_code
            == 400
        )


ESCAPES = [
    "/api/runs/..%2f..%2fsecret.txt",
    "/api/runs/../secret.txt",
    "/api/runs/%2e%2e/log",
    "/api/runs/dvae/model",
    "/api/runs/0000/log",
    "/static/../server.py",
    "/static/..%2fserver.py",
    "/static/%2e%2e/%2e%2e/errors.py",
    "/static//etc/passwd",
    "/secret.txt",
    "/runs/dvae/config.json",
]


@pytest.mark.parametrize("path", ESCAPES)
def test_nothing_outside_the_runs_can_be_read(address, path):
    request = requests.Request("GET", address).prepare()
    request.url = address + path  # as it is: requests would tidy it up
    answer = requests.Session().send(request, timeout=60)
    assert answer.status_code == 404
    assert answer.json()["message"]
    assert "secret" not in answer.text


def test_a_run_that_is_deleted_gives_a_message(own_address, tokens, own_root):
    path = f"/api/runs/{tokens['dvae']}"
    assert post(own_address, f"{path}/decode", {"values": [0, 0]}).status_code == 200
    shutil.rmtree(own_root / "dvae")
    for answer in (
        post(own_address, f"{path}/decode", {"values": [0, 0]}),
        get(own_address, path),
        get(own_address, f"{path}/log"),
    ):
        assert answer.status_code == 404
        assert "no longer there" in answer.json()["message"]


def test_a_model_that_is_replaced_is_read_anew(own_address, tokens, own_root):
    path = f"/api/runs/{tokens['dvae']}/model"
    assert "categories" in get(own_address, path).json()["latents"][0]
    (own_root / "vae/model.safetensors").replace(own_root / "dvae/model.safetensors")
    assert "range" in get(own_address, path).json()["latents"][0]


def test_damage_gives_a_message_without_a_path(own_address, tokens, own_root):
    content = (own_root / "dvae/model.safetensors").read_bytes()
    (own_root / "dvae/model.safetensors").write_bytes(content[: len(content) // 2])
    answer = get(own_address, f"/api/runs/{tokens['dvae']}/model")
    assert answer.status_code == 400
    assert "cannot use the model" in answer.json()["message"]
    assert str(own_root) not in answer.text
    (own_root / "vae/scores.json").write_text("{")
    broken = get(own_address, f"/api/runs/{tokens['vae']}").json()
    assert (broken["state"], "no JSON" in broken["reason"]) == ("broken", True)
    assert get(own_address, f"/api/runs/{tokens['vae']}/scores").json()["metrics"] == []


def test_a_run_that_trains_has_curves_and_no_model(address, tokens):
    log = get(address, f"/api/runs/{tokens['unfinished']}/log").json()
    assert (log["state"], log["step"], log["steps"]) == ("training", 20, 40)
    assert log["terms"] == {"loss": [[20, 9.5]], "kl": [[20, 1.5]]}  # the torn line is not there
    answer = get(address, f"/api/runs/{tokens['unfinished']}/model")
    assert (answer.status_code, "no model yet" in answer.text) == (400, True)


def test_without_its_images_a_model_still_opens(own_address, own_root):
    folder = own_root / "elsewhere"
    trained = lddr.Trained.load(own_root / "dvae")
    settings = json.loads((own_root / "dvae/config.json").read_text())
    settings["settings"]["dataset"] = "/no/such/folder"
    config = type(trained.config).from_dict(settings["settings"])
    lddr.Trained(config, trained.vae, trained.image_shape).save(folder)
    (folder / "config.json").write_text(json.dumps(settings))
    token = next(row["token"] for row in get(own_address, "/api/runs").json()["runs"] if row["name"] == "elsewhere")
    model = get(own_address, f"/api/runs/{token}/model").json()
    assert model["dataset"] is None
    assert "does not exist" in model["problem"]
    assert post(own_address, f"/api/runs/{token}/decode", {"values": [0, 0]}).status_code == 200
    assert post(own_address, f"/api/runs/{token}/encode", {"index": 0}).status_code == 400
    assert post(own_address, f"/api/runs/{token}/encode", as_png(IMAGES.images([3])[0, :, :, 0]), "image/png").ok


def test_a_mistake_of_ours_is_a_sentence_too(root, monkeypatch, capfd):
    monkeypatch.setattr(Catalogue, "table", lambda self: 1 / 0)
    with serving(root) as address:
        answer = get(address, "/api/runs")
    assert answer.status_code == 500
    assert "ZeroDivisionError" in answer.json()["message"]
    assert "content-security-policy" in answer.headers
    assert "Traceback" in capfd.readouterr().err


def test_an_empty_folder_has_no_runs(tmp_path):
    with serving(tmp_path) as address:
        assert get(address, "/api/runs").json()["runs"] == []
