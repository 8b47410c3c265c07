"""How processes of this project behave: threads that do not fight, and no progress bars in notebooks.

Two spinning threads on a busy two-core machine are several times slower than one, and numba and torch share one thread
pool, so both get the same number. One thread is the default: parallel work here runs over models and processes, and the
order of a sum over threads would change last digits. These variables count only before torch and numba are imported.
"""

import os


def prepare_environment() -> None:
    """Set what is not set already in the process environment, which kernels and worker processes inherit.

    A drawing backend is taken away, since a kernel that inherits one shows no figures in its notebook. PyTorch Geometric
    imports a progress bar for notebooks, which warns in every kernel that widgets are not installed; they are not wanted.
    """
    threads = os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["NUMBA_NUM_THREADS"] = threads
    os.environ.setdefault("MKL_NUM_THREADS", threads)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    os.environ.pop("MPLBACKEND", None)
    given, ignored = os.environ.get("PYTHONWARNINGS", ""), "ignore:IProgress not found"
    if ignored not in given:
        os.environ["PYTHONWARNINGS"] = f"{given},{ignored}" if given else ignored
