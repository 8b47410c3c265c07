"""Compiled random numbers, addressed by (key, draw): draw t is the same whoever computes it, in whatever order.

The generator is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): a
64-bit counter that grows by a constant and is scrambled. Its state is one uint64 in an array of length 1.
"""

import numpy as np
from numba import njit

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@njit(nogil=True)
def _scramble(word):
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


@njit(nogil=True)
def start_stream(state, key, draw):
    """Set the state to the beginning of the stream of one draw."""
    state[0] = _scramble(key ^ _scramble(np.uint64(draw + 1) * _STEP))


@njit(nogil=True)
def next_float(state):
    """A uniform number in [0, 1) with 53 random bits."""
    state[0] += _STEP
    return (_scramble(state[0]) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(nogil=True)
def next_below(state, bound):
    """A uniform integer in 0..bound - 1; its bias is below bound / 2^53."""
    return int(next_float(state) * bound)


@njit(nogil=True)
def shuffle_first(state, items, length, count):
    """Put a uniform ordered choice of ``count`` of the first ``length`` items to the front (Fisher-Yates)."""
    for i in range(count):
        j = i + next_below(state, length - i)
        items[i], items[j] = items[j], items[i]


@njit(nogil=True)
def fresh_node(state, sampled):
    """A uniform node among those not sampled yet (at least one must be left)."""
    while True:
        node = next_below(state, len(sampled))
        if not sampled[node]:
            return node
