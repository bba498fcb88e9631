import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from lddr.errors import UserError
from lddr.training.adam import Adam
from lddr.training.checkpoint import (
    Checkpoint,
    fill,
    load_model,
    load_module,
    load_newest,
    module_tensors,
    save,
    save_model,
)

TENSORS = {"model.weight": torch.arange(12.0).reshape(3, 4), "adam.0.step": torch.tensor(7.0)}


@pytest.fixture(autouse=True)
def one_thread():
    """More threads than idle cores make small kernels wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def no_warning(sentence):
    raise AssertionError(sentence)


def same(left, right):
    """Equal in name, type, shape and every bit (NaN included)."""
    return left.keys() == right.keys() and all(
        left[name].dtype == right[name].dtype
        and left[name].shape == right[name].shape
        and torch.equal(bits(left[name]), bits(right[name]))
        for name in left
    )


def bits(tensor):
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


# the state of modules and optimisers


class Net(nn.Module):
    """Odd sizes, so that every kernel has a remainder; a buffer; a weight that never gets a gradient."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 7, 3)
        self.norm = nn.BatchNorm2d(7)
        self.deconvolution = nn.ConvTranspose2d(7, 5, 3)
        self.linear = nn.Linear(5, 3)
        self.unused = nn.Parameter(torch.ones(5))

    def forward(self, images):
        maps = self.deconvolution(self.norm(self.convolution(images)).relu())
        return self.linear(maps.mean((2, 3)))


class Training:
    """A net and its optimiser, where the data of a step depend on the step alone."""

    def __init__(self, seed, memory_format=torch.contiguous_format):
        torch.manual_seed(seed)
        self.memory_format = memory_format
        self.net = Net().to(memory_format=memory_format)
        self.optimizer = Adam(self.net.parameters(), 3e-3, betas=(0.5, 0.9))

    def run(self, first, last):
        for step in range(first, last):
            images = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(step))
            self.optimizer.zero_grad()
            self.net(images.to(memory_format=self.memory_format)).square().sum().backward()
            self.optimizer.step()

    def tensors(self):
        return module_tensors("net", self.net) | self.optimizer.tensors("adam")

    def load(self, tensors):
        load_module("net", self.net, tensors)
        fill("adam", self.optimizer.tensors("adam"), tensors)


@pytest.mark.parametrize("stop", [0, 1, 4])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_a_resumed_training_ends_with_the_same_bits(tmp_path, stop, memory_format):
    uninterrupted = Training(0, memory_format)
    uninterrupted.run(0, 9)
    killed = Training(0, memory_format)
    killed.run(0, stop)
    save(tmp_path, stop, killed.tensors(), {})
    resumed = Training(1, memory_format)
    resumed.load(load_newest(tmp_path, no_warning).tensors)
    assert same(resumed.tensors(), killed.tensors())
    resumed.run(stop, 9)
    assert same(resumed.tensors(), uninterrupted.tensors())
    strides = {name: tensor.stride() for name, tensor in uninterrupted.tensors().items()}
    assert {name: tensor.stride() for name, tensor in resumed.tensors().items()} == strides


def test_taking_the_state_before_the_first_step_changes_nothing():
    looked_at, left_alone = Training(0), Training(0)
    looked_at.tensors()
    looked_at.run(0, 3)
    left_alone.run(0, 3)
    assert same(looked_at.tensors(), left_alone.tensors())


def test_names_are_those_of_the_module_and_the_numbers_of_the_parameters():
    linear = nn.Linear(2, 3)
    names = {"a.weight": (3, 2), "a.bias": (3,)}
    assert {name: tuple(tensor.shape) for name, tensor in module_tensors("a", linear).items()} == names
    names = {f"o.{number}.{part}" for number in (0, 1) for part in ("step", "exp_avg", "exp_avg_sq")}
    assert Adam(linear.parameters(), 1e-3, (0.9, 0.999)).tensors("o").keys() == names


@pytest.mark.parametrize("prefix", ["net", "adam"])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda tensors, name: tensors.pop(name), "is missing .*; use the settings it was saved with"),
        (lambda tensors, name: tensors.update({f"{name}.x": tensors[name]}), r"\.x is unexpected"),
        (lambda tensors, name: tensors.update({name: torch.zeros(2, 2)}), r"is float32 \(2, 2\) and should be"),
        (lambda tensors, name: tensors.update({name: tensors[name].double()}), r"is float64 .* should be float32"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_untouched(prefix, change, sentence):
    training = Training(0)
    training.run(0, 2)
    before = {name: tensor.clone() for name, tensor in training.tensors().items()}
    tensors = {name: tensor + 1 for name, tensor in before.items()}
    change(tensors, [name for name in tensors if name.startswith(prefix) and tensors[name].is_floating_point()][-1])
    targets = {"net": module_tensors("net", training.net), "adam": training.optimizer.tensors("adam")}
    with pytest.raises(UserError, match=sentence):
        fill(prefix, targets[prefix], tensors)
    assert same(training.tensors(), before)


def test_a_prefix_does_not_take_the_names_of_a_longer_one():
    short, long = nn.Linear(1, 1), nn.Linear(1, 1)
    tensors = module_tensors("net", short) | module_tensors("network", long)
    fresh = nn.Linear(1, 1)
    load_module("net", fresh, tensors)
    assert same(module_tensors("net", fresh), module_tensors("net", short))


# one file


DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.uint8]


@st.composite
def any_tensor(draw):
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    dtype = draw(st.sampled_from(DTYPES))
    raw = torch.randint(
        0, 256, (8 * torch.Size(shape).numel(),), generator=torch.Generator().manual_seed(draw(st.integers(0, 99)))
    )
    tensor = raw.to(torch.uint8).view(dtype)[: torch.Size(shape).numel()].reshape(shape)  # NaN and all
    return tensor.transpose(0, -1) if shape and draw(st.booleans()) else tensor


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=25, deadline=None)
@given(
    tensors=st.dictionaries(
        st.from_regex(r"[\w.é]{1,9}", fullmatch=True).filter(lambda name: name != "__metadata__"),
        any_tensor(),
        max_size=4,
    ),
    facts=st.dictionaries(st.text(), JSON, max_size=3),
)
def test_tensors_and_facts_come_back_bit_for_bit(tmp_path_factory, tensors, facts):
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    save_model(path, tensors, facts)
    loaded, known = load_model(path)
    assert same(loaded, tensors)
    assert known == facts


def test_tensors_that_share_memory_are_saved_as_their_own(tmp_path):
    whole = torch.arange(6.0)
    tensors = {"whole": whole, "again": whole, "part": whole[2:4], "wide": whole[:1].expand(3)}
    save_model(tmp_path / "model.safetensors", tensors, {})
    assert same(load_model(tmp_path / "model.safetensors")[0], tensors)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model file and what it holds."""
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    save_model(path, TENSORS, {"step": 7})
    return path, path.read_bytes()


@settings(max_examples=60, deadline=None)
@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_every_flipped_bit_is_noticed(model, position, bit):
    path, content = model
    flipped = bytearray(content)
    flipped[int(position * len(content))] ^= 1 << bit
    path.write_bytes(flipped)
    with pytest.raises(UserError, match=r"cannot use the model .*; train it again or copy it again"):
        load_model(path)


@pytest.mark.parametrize(
    ("part", "other"),
    [(b'"F32"', b'"I32"'), (b"[3,4]", b"[4,3]"), (b"model.weight", b"model.height"), (b"adam.0", b"adam.1")],
)
def test_bytes_under_another_name_type_or_shape_are_noticed(tmp_path, part, other):
    path = tmp_path / "model.safetensors"
    save_model(path, TENSORS, {})
    content = path.read_bytes()
    assert part in content
    path.write_bytes(content.replace(part, other, 1))
    with pytest.raises(UserError, match="its digest is not that of its content"):
        load_model(path)


def test_a_missing_or_foreign_model_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match=r"there is no model .*train it first"):
        load_model(tmp_path / "model.safetensors")
    with pytest.raises(UserError, match="no plain file"):
        load_model(tmp_path)
    safetensors.torch.save_file(TENSORS, tmp_path / "foreign.safetensors")
    with pytest.raises(UserError, match="not written by lddr"):
        load_model(tmp_path / "foreign.safetensors")


# the folder of checkpoints


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_two_are_kept(tmp_path):
    folder = tmp_path / "new" / "checkpoint"
    assert load_newest(folder, no_warning) is None
    for step in (0, 5, 10, 100):
        save(folder, step, TENSORS, {"at": step})
    assert names(folder) == ["000000010.safetensors", "000000100.safetensors"]
    newest = load_newest(folder, no_warning)
    assert isinstance(newest, Checkpoint)
    assert (newest.step, newest.facts) == (100, {"at": 100})
    assert same(newest.tensors, TENSORS)


def test_steps_beyond_nine_digits_still_count_as_newer(tmp_path):
    save(tmp_path, 999_999_999, TENSORS, {})
    save(tmp_path, 1_000_000_000, TENSORS, {})
    assert load_newest(tmp_path, no_warning).step == 1_000_000_000


def test_the_older_one_stays_until_the_new_one_is_whole(tmp_path, monkeypatch):
    save(tmp_path, 1, TENSORS, {})
    save(tmp_path, 2, TENSORS, {})
    seen = []
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda draft, path: (seen.extend(names(tmp_path)), replace(draft, path))[1])
    save(tmp_path, 3, TENSORS, {})
    assert {"000000001.safetensors", "000000002.safetensors"} < set(seen)
    assert names(tmp_path) == ["000000002.safetensors", "000000003.safetensors"]


def test_what_killed_processes_left_is_removed_and_nothing_else(tmp_path):
    for name in (".000000003-0123abcd.safetensors", "notes.txt", ".hidden", "000000003.damaged"):
        (tmp_path / name).write_text("half")
    save(tmp_path, 4, TENSORS, {})
    assert names(tmp_path) == [".hidden", "000000004.safetensors", "notes.txt"]


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


def empty(path):
    path.write_bytes(b"")


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def zero(path):
    path.write_bytes(bytes(path.stat().st_size))


def make_unreadable(path):
    path.unlink()
    path.symlink_to(path)  # a loop: unreadable for everyone, root included


@pytest.mark.parametrize("damage", [truncate, empty, flip, zero, make_unreadable])
def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before_it(tmp_path, damage):
    for step in (10, 20):
        save(tmp_path, step, TENSORS, {"at": step})
    damage(tmp_path / "000000020.safetensors")
    warnings = []
    assert load_newest(tmp_path, warnings.append).facts == {"at": 10}
    assert len(warnings) == 1
    assert warnings[0].startswith(f"cannot use the checkpoint {tmp_path}/000000020.safetensors (")
    assert warnings[0].endswith("; going back to 000000010.safetensors")
    assert load_newest(tmp_path, no_warning).step == 10
    for step in (15, 25):  # neither counts the damaged one as the one before it
        save(tmp_path, step, TENSORS, {})
        assert load_newest(tmp_path, no_warning).step == step
    assert names(tmp_path) == ["000000015.safetensors", "000000025.safetensors"]


def test_a_good_one_is_not_given_up_for_a_damaged_one(tmp_path):
    for step in (10, 20):
        save(tmp_path, step, TENSORS, {})
    truncate(tmp_path / "000000020.safetensors")
    load_newest(tmp_path, lambda sentence: None)
    save(tmp_path, 30, TENSORS, {})
    truncate(tmp_path / "000000030.safetensors")
    assert load_newest(tmp_path, lambda sentence: None).step == 10


def test_without_a_good_checkpoint_there_is_none(tmp_path):
    for step in (10, 20):
        save(tmp_path, step, TENSORS, {})
        flip(tmp_path / f"{step:09d}.safetensors")
    warnings = []
    assert load_newest(tmp_path, warnings.append) is None
    assert len(warnings) == 2
    assert warnings[1].endswith("; starting from the beginning")


def test_a_run_that_began_anew_keeps_what_it_saves(tmp_path):
    for step in (100, 200, 5):
        save(tmp_path, step, TENSORS, {})
    assert names(tmp_path) == ["000000005.safetensors"]


# trouble


def test_a_full_disk_is_a_sentence_and_spoils_nothing(tmp_path, monkeypatch):
    save(tmp_path, 1, TENSORS, {})

    def write_half(path, content):
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_half)
    with pytest.raises(UserError, match=r"cannot write .*000000002.safetensors: No space left on device; free it"):
        save(tmp_path, 2, TENSORS, {})
    assert names(tmp_path) == ["000000001.safetensors"]
    assert load_newest(tmp_path, no_warning).step == 1


def test_a_folder_below_a_file_is_a_sentence(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        save(tmp_path / "run" / "checkpoint", 1, TENSORS, {})


REAL_TROUBLE = """
import subprocess, sys
from pathlib import Path
import torch
from lddr.errors import UserError
from lddr.training.checkpoint import load_newest, save

folder = Path(sys.argv[1])

def names():
    return sorted(path.name for path in folder.iterdir())

def refused(step, size):
    try:
        save(folder, step, {"weight": torch.ones(size)}, {})
    except UserError as error:
        print(error)
    assert names() == ["000000001.safetensors"], names()
    assert load_newest(folder, print).step == 1

save(folder, 1, {"weight": torch.ones(100)}, {})
refused(2, 100_000)
subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
refused(2, 1)
"""


def test_a_disk_that_is_really_full_or_read_only(tmp_path):
    """On a small disk of its own, in a namespace that vanishes with the process."""
    apart = ["unshare", "--user", "--map-root-user", "--mount"]
    mount = 'mount -t tmpfs -o size=100k none "$0" && exec "$@"'
    command = [*apart, "sh", "-c", mount, str(tmp_path)]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    script = [*command, sys.executable, "-c", REAL_TROUBLE, str(tmp_path)]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line.partition(".safetensors: ")[2] for line in done.stdout.splitlines()] == [
        "No space left on device; free it or choose another place",
        "Read-only file system; free it or choose another place",
    ]


KILLED = """
import json, os, random, signal, sys, time
from pathlib import Path
import torch
from lddr.training.checkpoint import load_newest, save

torch.set_num_threads(1)
folder = Path(sys.argv[1])
warnings = []
saved, report = os.pipe()

def train():
    newest = load_newest(folder, warnings.append)
    for step in range(newest.step + 1 if newest else 0, 10**9):
        save(folder, step, {"a": torch.full((300, 50), float(step)), "b": torch.tensor(step)}, {"at": step})
        os.write(report, b".")

steps = []
for number in range(10):
    if not (child := os.fork()):
        try:
            train()
        finally:
            os._exit(1)
    if number % 2:  # every other child has saved before it is killed, however slow the machine is
        os.read(saved, 1)
    time.sleep(random.uniform(0, 0.07))
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    os.write(report, b".")  # reading what the child reported must not block
    os.read(saved, 2**16)
    newest = load_newest(folder, warnings.append)
    if newest:
        assert newest.facts == {"at": newest.step} and newest.tensors["b"] == newest.step
        assert (newest.tensors["a"] == newest.step).all() and newest.tensors["a"].shape == (300, 50)
    steps.append(newest.step if newest else -1)
save(folder, 10**9, {}, {})
print(json.dumps({"steps": steps, "warnings": warnings, "left": len(list(folder.iterdir()))}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork to be quick")
def test_a_kill_at_any_moment_leaves_a_whole_checkpoint(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["steps"] == sorted(outcome["steps"])
    assert outcome["steps"][-1] >= 4  # five children have saved at least once
    assert outcome["warnings"] == []
    assert outcome["left"] == 2


def test_the_same_state_is_the_same_bytes(tmp_path):
    tensors = {"b": torch.arange(3.0), "a": torch.zeros(2, 2)}
    for number in range(20):
        save_model(tmp_path / f"{number}.safetensors", tensors, {"one": 1, "two": 2})
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_facts_that_are_none_are_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    save_model(path, TENSORS, [1])
    with pytest.raises(UserError, match="its metadata holds no facts"):
        load_model(path)
