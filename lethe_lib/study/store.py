"""The record store: one run, one file, written whole or not at all.

A record is a JSON object named after the hash of its configuration. It is written to a temporary name, flushed to disk
and renamed, so a killed run leaves no half record; arrays, if any, go first into a compressed file of plain numbers
beside it. Each record carries a digest of itself and of its arrays: a truncated or altered file is found out when it is
read, named, set aside and computed again. Nothing is ever pickled.
"""

import hashlib
import io
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lethe_lib import paths
from lethe_lib.errors import DamagedFile


def default_root() -> Path:
    """``LETHE_RECORDS``, else ``records/`` of the checkout (never tracked)."""
    return Path(os.environ.get("LETHE_RECORDS") or paths.repository() / "records")


class RecordStore:
    """Records of one study in one folder.

    Args:
        folder: where the files lie; made when the first record is written.

    Example:
        >>> import tempfile
        >>> store = RecordStore(tempfile.mkdtemp())
        >>> store.write("ab12", {"status": "ok"})
        >>> store.read("ab12")["status"]
        'ok'
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)

    def write(self, key: str, record: dict, arrays: dict[str, np.ndarray] | None = None) -> None:
        """Store a record under its key, replacing an older one in a single step."""
        self.folder.mkdir(parents=True, exist_ok=True)
        record = dict(record)
        if arrays:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **arrays)
            record["arrays_sha256"] = hashlib.sha256(buffer.getvalue()).hexdigest()
            _write_whole(self.folder / f"{key}.npz", buffer.getvalue())
        text = json.dumps(record, sort_keys=True, indent=1, allow_nan=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        _write_whole(self.folder / f"{key}.json", f"{text}\n{digest}\n".encode())

    def read(self, key: str) -> dict:
        """The record of a key.

        Raises:
            KeyError: there is none.
            DamagedFile: the file is truncated or altered; the message names it.
        """
        path = self.folder / f"{key}.json"
        try:
            content = path.read_text()
        except FileNotFoundError:
            raise KeyError(key) from None
        except UnicodeDecodeError as error:
            raise DamagedFile(f"{path} is not a record: {error}") from error
        text, _, digest = content.rstrip("\n").rpartition("\n")
        if hashlib.sha256(text.encode()).hexdigest() != digest:
            raise DamagedFile(f"{path} is truncated or was altered: its digest does not match its content")
        return json.loads(text)

    def arrays(self, key: str) -> dict[str, np.ndarray]:
        """The arrays stored with a record; empty if it has none. DamagedFile when they are not what they were."""
        expected = self.read(key).get("arrays_sha256")
        if expected is None:
            return {}
        path = self.folder / f"{key}.npz"
        content = path.read_bytes() if path.exists() else b""
        if hashlib.sha256(content).hexdigest() != expected:
            raise DamagedFile(f"{path} is missing, truncated or was altered")
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            return dict(stored)

    def finished(self, key: str) -> bool:
        """Whether a whole record exists. A damaged one is renamed to ``*.damaged`` and counts as missing."""
        try:
            self.arrays(key)
        except KeyError:
            return False
        except DamagedFile as error:
            path = self.folder / f"{key}.json"
            path.replace(path.with_suffix(".damaged"))
            print(f"damaged record set aside, it will be computed again: {error}", flush=True)
            return False
        return True

    def adopt(self, key: str, other: "RecordStore") -> bool:
        """Take over the finished record of another store; False if it has none.

        The key names the whole run, so it does not matter for which study the run was done.
        """
        if not other.finished(key):
            return False
        record = other.read(key)
        record.pop("arrays_sha256", None)
        self.write(key, record, other.arrays(key))
        return True

    def keys(self) -> Iterator[str]:
        """The keys of all record files, sorted."""
        return iter(sorted(path.stem for path in self.folder.glob("*.json")))


def _write_whole(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
