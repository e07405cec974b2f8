"""Files as HDFS has them, in memory, and writers whose requests come in any order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from random import Random
from typing import TypeVar

from connectors.object_store.contract import StoreUnavailableError
from connectors.object_store.webhdfs import HdfsFile

T = TypeVar("T")


class InMemoryFiles:
    """Files by absolute paths. Each request is atomic; ``surrounded`` does it, or lets it fail."""

    def __init__(self, surrounded: Callable[[Callable[[], T]], T] = lambda request: request()):
        self.files: dict[str, bytes] = {}
        self._surrounded = surrounded

    def create(self, path: str, content: bytes) -> None:
        # It is seen before it is whole.
        for end in (len(content) // 2, len(content)):
            self._put(path, content[:end])

    def read(self, path: str) -> bytes | None:
        return self._surrounded(lambda: self.files.get(path))

    def rename(self, source: str, target: str, *, over: bool = False) -> bool:
        def rename() -> bool:
            if source not in self.files:
                raise StoreUnavailableError("there is no source")
            if target in self.files and not over:
                return False
            self.files[target] = self.files.pop(source)
            return True

        return self._surrounded(rename)

    def remove(self, path: str) -> None:
        self._surrounded(lambda: self.files.pop(path, None))

    def make_folder(self, path: str) -> None:
        """Do nothing: folders are parts of names."""

    def list(self, path: str) -> Sequence[HdfsFile]:
        return self._surrounded(lambda: self._listed(f"{path}/"))

    def _listed(self, folder: str) -> Sequence[HdfsFile]:
        below = [each.removeprefix(folder) for each in self.files if each.startswith(folder)]
        found = {each.partition("/")[0]: "/" in each for each in below}
        return [HdfsFile(name, is_folder, 0.0) for name, is_folder in found.items()]

    def _put(self, path: str, content: bytes) -> None:
        self._surrounded(lambda: self.files.__setitem__(path, content))


class Killed(BaseException):
    """End of a writer at a request."""


class Turns:
    """Writers of which one goes on at a time, as far as its next request.

    Chance says which; now and then one is held up for long, is killed, or hears of a failure,
    before or after the request was done.
    """

    def __init__(self, random: Random, killed: float = 0.01, fails: float = 0.05) -> None:
        self._random = random
        self._killed = killed
        self._fails = fails
        self.failures: list[Exception] = []
        self._own = threading.local()
        self._reports: SimpleQueue[bool] = SimpleQueue()
        self._go: list[threading.Semaphore] = []

    def request(self, request: Callable[[], T]) -> T:
        """Do a writer's request in its turn; those of others at once."""
        number = getattr(self._own, "number", None)
        if number is None:
            return request()
        self._reports.put(False)
        self._go[number].acquire()
        if self._random.random() < self._killed:
            raise Killed
        chance = self._random.random()
        if chance < self._fails / 2:
            raise StoreUnavailableError("not done")
        done = request()
        if chance < self._fails:
            raise StoreUnavailableError("done, and not heard of")
        return done

    def run(self, writers: Sequence[Callable[[], None]]) -> None:
        """Let all writers come to their ends."""
        self._go = [threading.Semaphore(0) for _ in writers]
        threads = [threading.Thread(target=self._write, args=each) for each in enumerate(writers)]
        for thread in threads:
            thread.start()
        left, held = set(range(len(writers))), -1
        while left:
            if self._random.random() < 0.1:
                held = self._random.choice([-1, *left])
            number = self._random.choice(sorted(left - {held} or left))
            self._go[number].release()
            if self._reports.get():
                left.remove(number)
        for thread in threads:
            thread.join()

    def _write(self, number: int, writer: Callable[[], None]) -> None:
        self._own.number = number
        self._go[number].acquire()
        try:
            writer()
        except Killed:
            pass
        except Exception as failure:
            self.failures.append(failure)
        finally:
            self._reports.put(True)
