"""Where a number comes from: versions, device, threads, commit."""

import importlib.metadata
import os
import platform
import subprocess
from functools import cache

import torch

import lethe_lib
from lethe_lib import paths

PACKAGES = ("torch", "torch-geometric", "numpy", "scipy", "scikit-learn", "pandas")


@cache
def environment() -> dict[str, str | int]:
    """Versions and hardware of this process; the same for every record it writes."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "lethe_lib": lethe_lib.__version__,
        "python": platform.python_version(),
        **versions,
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "commit": commit(),
    }


def commit() -> str:
    """The commit of the checkout, with ``+changes`` when tracked files differ; ``unknown`` outside a checkout."""
    command = ["git", "-C", str(paths.repository())]
    try:
        head = subprocess.run([*command, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        changes = subprocess.run(
            [*command, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.stdout.strip() + ("+changes" if changes.stdout.strip() else "")


def device_name(device: str) -> str:
    """The device in words: ``cpu``, or the name of the GPU."""
    return torch.cuda.get_device_name() if device.startswith("cuda") else "cpu"


class PeakMemory:
    """The largest resident memory of this process since the start of the ``with`` block, in MiB.

    Linux lets a process reset its own high-water mark. Where that is not possible, ``scope`` says ``process``: the
    figure then includes whatever ran earlier in the same process.
    """

    def __enter__(self) -> "PeakMemory":
        try:
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
            self.scope = "run"
        except OSError:
            self.scope = "process"
        return self

    def __exit__(self, *_: object) -> None:
        self.mebibytes = _high_water_mark()


def _high_water_mark() -> float:
    try:
        with open("/proc/self/status") as file:
            line = next(line for line in file if line.startswith("VmHWM"))
        return round(int(line.split()[1]) / 1024, 1)
    except (OSError, StopIteration):
        import resource

        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
