"""A bounded cache for things that take long to make, shared by many threads."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Thing = TypeVar("Thing")


class SharedCache(Generic[Key, Thing]):
    """The things used last, each made once however many ask for it at the same time; a failure is not kept."""

    def __init__(self, make: Callable[[Key], Thing], limit: int) -> None:
        self._make, self._limit = make, limit
        self._things: OrderedDict[Key, Future[Thing]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> Thing:
        with self._lock:
            promise = self._things.get(key)
            is_mine = promise is None
            if promise is None:
                promise = self._things[key] = Future()
            self._things.move_to_end(key)
            while len(self._things) > self._limit:
                self._things.popitem(last=False)
        if is_mine:
            self._keep(key, promise)
        return promise.result()

    def _keep(self, key: Key, promise: Future[Thing]) -> None:
        """Make the thing outside the lock, so that nobody who wants another one waits."""
        try:
            promise.set_result(self._make(key))
        except BaseException as error:
            with self._lock:
                if self._things.get(key) is promise:
                    del self._things[key]
            promise.set_exception(error)

    def __len__(self) -> int:
        return len(self._things)
