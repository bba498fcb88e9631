import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lddr.explorer.models import SharedCache


@given(st.lists(st.integers(0, 6)), st.integers(1, 4))
def test_the_last_used_are_kept_and_no_more(keys, limit):
    made = []
    cache = SharedCache(lambda key: made.append(key) or str(key), limit)
    model = []  # the keys on the cache, used longest ago first
    for key in keys:
        is_there = key in model
        assert cache.get(key) == str(key)
        assert (made[-1:] == [key]) or is_there
        model = [other for other in model if other != key] + [key]
        model = model[-limit:]
        assert len(cache) == len(model)
        before = len(made)
        for other in model:
            cache.get(other)
        assert len(made) == before


def test_what_many_ask_for_is_made_once():
    go, made = threading.Event(), []

    def make(key):
        go.wait(60)
        made.append(key)
        return object()

    cache = SharedCache(make, 2)
    with ThreadPoolExecutor(8) as pool:
        promises = [pool.submit(cache.get, "model") for _ in range(8)]
        go.set()
        assert len({id(promise.result(60)) for promise in promises}) == 1
    assert made == ["model"]


def test_a_slow_thing_does_not_hold_up_another():
    go = threading.Event()
    cache = SharedCache(lambda key: go.wait(60) if key == "slow" else key, 4)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(cache.get, "slow")
        assert cache.get("quick") == "quick"
        assert not slow.done()
        go.set()
        assert slow.result(60) is True


def test_a_failure_is_not_kept():
    answers = iter([ValueError("not yet"), "now"])

    def make(key):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    cache = SharedCache(make, 2)
    with pytest.raises(ValueError, match="not yet"):
        cache.get("model")
    assert len(cache) == 0
    assert cache.get("model") == "now"
