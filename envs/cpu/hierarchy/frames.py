"""Physical page frames in a random order, the one that ChampSim hands them out in.

ChampSim shuffles the frames above the first MiB with ``std::shuffle`` of GCC's library and
``std::mt19937_64``, whose algorithms are fixed: Matsumoto and Nishimura's generator of 64 bits
(ACM Trans. Model. Comput. Simul. 10, 2000), Lemire's bounded numbers (ACM Trans. Model. Comput.
Simul. 29, 2019), and two swaps for each number drawn.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from archgym.envs.cpu.hierarchy.compiled import compiled, entry

__all__ = ["PAGE_SHIFT", "shuffled_frames"]

PAGE_SHIFT: Final = 12
_FIRST: Final = 1 << (20 - PAGE_SHIFT)
_MEMORY_BYTES: Final = 16 << 30
_KEPT: Final = 1 << 18  # 1 GiB of pages


@lru_cache(maxsize=2)
def shuffled_frames(seed: int = 1) -> NDArray[np.int64]:
    """The frames of 16 GiB in the order in which they are handed out; the first 1 GiB of them."""
    frames = np.arange(_FIRST, _MEMORY_BYTES >> PAGE_SHIFT, dtype=np.int32)
    _shuffle(frames, np.uint64(seed), np.zeros(312, np.uint64), np.full(1, 312, np.int64))
    kept = frames[:_KEPT].astype(np.int64)
    kept.setflags(write=False)
    return kept


@compiled
def _next(words: Any, place: Any) -> Any:
    """The generator's next number."""
    if place[0] == 312:
        for i in range(312):
            x = (words[i] & np.uint64(0xFFFFFFFF80000000)) | (
                words[(i + 1) % 312] & np.uint64(0x7FFFFFFF)
            )
            y = x >> np.uint64(1)
            if x & np.uint64(1):
                y ^= np.uint64(0xB5026F5AA96619E9)
            words[i] = words[(i + 156) % 312] ^ y
        place[0] = 0
    x = words[place[0]]
    place[0] += 1
    x ^= (x >> np.uint64(29)) & np.uint64(0x5555555555555555)
    x ^= (x << np.uint64(17)) & np.uint64(0x71D67FFFEDA60000)
    x ^= (x << np.uint64(37)) & np.uint64(0xFFF7EEE000000000)
    return x ^ (x >> np.uint64(43))


@compiled
def _below(bound: Any, words: Any, place: Any) -> Any:
    """A number below a bound of less than 2^62."""
    mask = np.uint64(0xFFFFFFFF)
    threshold = (np.uint64(0) - bound) % bound
    while True:
        drawn = _next(words, place)
        # The product of 64 by 64 bits, by halves.
        a, b = drawn >> np.uint64(32), drawn & mask
        c, d = bound >> np.uint64(32), bound & mask
        low = b * d
        middle = a * d + (low >> np.uint64(32))
        other = b * c + (middle & mask)
        high = a * c + (middle >> np.uint64(32)) + (other >> np.uint64(32))
        rest = (other << np.uint64(32)) | (low & mask)
        if rest >= bound or rest >= threshold:
            return high


@entry
def _shuffle(sources: int) -> Any:
    def shuffle(frames: Any, seed: Any, words: Any, place: Any) -> Any:
        _ = sources
        words[0] = seed
        for i in range(1, 312):
            before = words[i - 1] ^ (words[i - 1] >> np.uint64(62))
            words[i] = np.uint64(6364136223846793005) * before + np.uint64(i)
        count = len(frames)
        i = 1
        if count % 2 == 0:
            other = np.int64(_below(np.uint64(2), words, place))
            frames[i], frames[other] = frames[other], frames[i]
            i = 2
        while i < count:
            size = np.uint64(i + 1)
            drawn = _below(size * (size + np.uint64(1)), words, place)
            first, second = (
                np.int64(drawn // (size + np.uint64(1))),
                np.int64(drawn % (size + np.uint64(1))),
            )
            frames[i], frames[first] = frames[first], frames[i]
            frames[i + 1], frames[second] = frames[second], frames[i + 1]
            i += 2

    return shuffle
