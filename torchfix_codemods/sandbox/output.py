"""What a command printed, however much that is, in bounded memory."""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Output:
    """The beginning and the end of a stream, and a digest of the whole."""

    head: bytes = b""
    tail: bytes = b""
    dropped: int = 0
    """Bytes between the two that were not kept."""
    digest: str = hashlib.sha256().hexdigest()
    """SHA-256 of all bytes, those that were dropped included."""

    @property
    def size(self) -> int:
        """Bytes that the stream had."""
        return len(self.head) + self.dropped + len(self.tail)

    @property
    def text(self) -> str:
        """What was kept, with a note where bytes are missing."""
        note = f"\n… {self.dropped:,} bytes left out …\n".encode() if self.dropped else b""
        return (self.head + note + self.tail).decode(errors="replace")

    def end(self, lines: int) -> str:
        """The last lines."""
        return "\n".join(self.text.rstrip().splitlines()[-lines:])


class Recorder:
    """Takes a stream in pieces, and keeps half of `limit` bytes of its beginning and half of its end."""

    def __init__(self, limit: int) -> None:
        self._first, self._last = limit - limit // 2, limit // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._kept, self._dropped = 0, 0
        self._digest = hashlib.sha256()

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self._digest.update(data)
        room = self._first - len(self._head)
        self._head += data[:room]
        if data[room:]:
            self._tail.append(data[room:])
            self._kept += len(data[room:])
            self._forget()

    def _forget(self) -> None:
        """Drop from the front of the tail what is beyond its share."""
        while self._kept > self._last:
            excess, oldest = self._kept - self._last, self._tail.popleft()
            cut = min(excess, len(oldest))
            if oldest[cut:]:
                self._tail.appendleft(oldest[cut:])
            self._kept -= cut
            self._dropped += cut

    def output(self) -> Output:
        """All that was taken."""
        return Output(bytes(self._head), b"".join(self._tail), self._dropped, self._digest.hexdigest())
