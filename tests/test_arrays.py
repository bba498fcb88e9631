"""Arrays of other frameworks go into every public score as they are; where one is not installed, numpy stands in."""

import numpy as np
import pytest
import torch

import lddr
from lddr import metrics
from lddr.arrays import as_array
from lddr.data.in_memory import ArrayDataset
from lddr.errors import UserError

GENERATOR = np.random.default_rng(0)
FACTORS = GENERATOR.integers([2, 3], size=(120, 2))
CODES = (FACTORS @ [[1.0, 0.2], [0.3, 1.0]] + 0.2 * GENERATOR.normal(size=(120, 2))).astype(np.float32)
VARIANCES, HELD = np.abs(CODES) + 0.1, FACTORS[:, 0]


class OnlyArray:
    """As TensorFlow and JAX arrays are seen by numpy: `__array__`, and nothing else."""

    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self._array, dtype)


class OnlyDlpack:
    """An array of the array API standard: DLPack alone, as a capsule and the device it is on."""

    def __init__(self, array):
        self._array = np.ascontiguousarray(array)

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class OldDlpack(OnlyDlpack):
    """DLPack of before one could name a device."""

    def __dlpack__(self, stream=None):
        return self._array.__dlpack__()


class OnGpu(OnlyDlpack):
    """As CuPy: `__array__` refuses, DLPack copies to the CPU when it is asked to, and `get` always does."""

    copies, gets = True, False

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __dlpack__(self, *, dl_device=None, **options):
        if not self.copies or dl_device != (1, 0):
            raise BufferError("the data is on a GPU")
        return self._array.__dlpack__()

    def __dlpack_device__(self):
        return (2, 0)


class OnOldGpu(OnGpu):
    copies = False

    def get(self):
        return self._array


class Stranded(OnGpu):
    copies = False


class OnCudaWithGradients(OnlyArray):
    """As a tensor of torch on a GPU: numpy gets it when it is off its graph and on the CPU, and not before."""

    dtype, place, follows = "torch.float32", "cuda", True

    def detach(self):
        return self._moved(follows=False)

    def cpu(self):
        return self._moved(place="cpu")

    def _moved(self, **facts):
        other = type(self)(self._array)
        vars(other).update({"place": self.place, "follows": self.follows} | facts)
        return other

    def __array__(self, dtype=None, copy=None):
        if self.follows or self.place != "cpu":
            raise RuntimeError("can't convert cuda:0 device type tensor to numpy")
        return np.array(self._array, dtype)


KINDS = {
    "torch": torch.from_numpy,
    "torch with gradients": lambda array: torch.from_numpy(array).requires_grad_(array.dtype.kind == "f"),
    "__array__": OnlyArray,
    "__dlpack__": OnlyDlpack,
    "DLPack without devices": OldDlpack,
    "GPU": OnGpu,
    "old GPU": OnOldGpu,
    "CUDA with gradients": OnCudaWithGradients,
    "lists": lambda array: array.tolist(),
    "rows of tensors": lambda array: [torch.from_numpy(np.array(row)) for row in array],
}
SCORES = {
    "mig": lambda wrap: metrics.mig(wrap(CODES), wrap(FACTORS)),
    "mig_sup": lambda wrap: metrics.mig_sup(wrap(CODES), wrap(FACTORS)),
    "modularity": lambda wrap: metrics.modularity(wrap(CODES), wrap(FACTORS)),
    "unsupervised": lambda wrap: metrics.unsupervised(wrap(CODES)),
    "infomec": lambda wrap: metrics.infomec(wrap(CODES), wrap(FACTORS), estimator="binned"),
    "irs": lambda wrap: metrics.irs([wrap(CODES)] * 2, [wrap(FACTORS[:, 0]), wrap(FACTORS[:, 1])]),
    "udr": lambda wrap: metrics.udr([wrap(CODES), wrap(CODES[:, ::-1].copy())], [wrap(np.array([True, True]))] * 2),
    "beta_vae": lambda wrap: metrics.beta_vae_score(wrap(CODES), wrap(HELD), wrap(CODES), wrap(HELD)),
    "factor_vae": lambda wrap: metrics.factor_vae_score(
        wrap(CODES.var(axis=0)), wrap(VARIANCES), wrap(HELD), wrap(VARIANCES), wrap(HELD)
    ),
} | {
    name: lambda wrap, score=score, options=options: score(
        wrap(CODES[:80]), wrap(FACTORS[:80]), wrap(CODES[80:]), wrap(FACTORS[80:]), **options
    )
    for name, score, options in (
        ("sap", metrics.sap, {}),
        ("explicitness", metrics.explicitness, {}),
        ("dci", metrics.dci, {"estimator": "fast"}),
        ("downstream", metrics.downstream, {"sizes": (10,)}),
    )
}


@pytest.mark.parametrize("score", SCORES)
def test_every_score_takes_arrays_of_other_frameworks(score):
    expected = SCORES[score](np.asarray).as_dict()
    for kind in ["__dlpack__"] if score in ("dci", "downstream", "infomec") else KINDS:
        assert SCORES[score](KINDS[kind]).as_dict() == expected, kind


@pytest.mark.parametrize("kind", KINDS)
def test_a_representation_and_a_table_of_codes_may_be_of_any_framework(kind):
    wrap, names = KINDS[kind], ["mig", "modularity"]
    images = ArrayDataset((FACTORS[:, :1, None, None] * 255).astype(np.uint8).repeat(2, 1).repeat(2, 2))

    def represent(pictures):
        return wrap(np.ascontiguousarray(pictures[:, 0, :, 0]))

    found = [
        lddr.evaluate(images, each, ["unsupervised"], jobs=1, quiet=True)
        for each in (represent, lambda x: x[:, 0, :, 0])
    ]
    assert found[0] == found[1]
    expected = metrics.score_codes(CODES, FACTORS, names, jobs=1, quiet=True)
    assert metrics.score_codes(wrap(CODES), wrap(FACTORS), names, jobs=1, quiet=True) == expected


def test_numbers_that_numpy_has_not_lose_nothing():
    rough = torch.from_numpy(CODES).bfloat16()
    assert np.array_equal(as_array(rough), rough.double().numpy())
    assert np.array_equal(as_array(torch.from_numpy(CODES).half()), CODES.astype(np.float16))
    assert np.array_equal(as_array([rough[0], rough[1]]), rough[:2].double().numpy())


@pytest.mark.parametrize(
    "stranger",
    [Stranded(CODES), torch.from_numpy(CODES).to_sparse(), torch.empty(120, 2, device="meta"), [[1.0], [1.0, 2.0]]],
    ids=["stranded", "sparse", "meta", "ragged"],
)
def test_what_cannot_be_read_is_one_sentence(stranger):
    with pytest.raises(UserError, match=r"cannot be read as an array .*; give a table of numbers, such as float32"):
        metrics.mig(stranger, FACTORS)


def test_arrays_of_numpy_come_through_as_they_are():
    assert as_array(CODES) is CODES
    assert as_array(torch.from_numpy(CODES)).dtype == np.float32
