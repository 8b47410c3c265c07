"""Explicit randomness: one independent generator per (seed, purpose), the same on every machine.

Nothing in the library draws from a global stream, so adding a draw in one place never shifts another.
"""

import hashlib

import numpy as np
import torch


def derive_seed(seed: int, *purpose: object) -> int:
    """A 63-bit seed that depends on ``seed`` and on every word of ``purpose``, and on nothing else."""
    text = "\x1f".join(map(str, (int(seed), *purpose)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def numpy_generator(seed: int, *purpose: object) -> np.random.Generator:
    """A NumPy generator for one purpose, for example ``numpy_generator(0, "forget_set", "random")``."""
    return np.random.default_rng(derive_seed(seed, *purpose))


def torch_generator(seed: int, *purpose: object, device: str = "cpu") -> torch.Generator:
    """A torch generator for one purpose, on one device."""
    generator = torch.Generator(device=device)
    generator.manual_seed(derive_seed(seed, *purpose))
    return generator
