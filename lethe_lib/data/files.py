"""Where raw files are found, how they are proved sound, and the one place that may download them.

for each root on the search path (argument, LETHE_DATA, user cache): if all files are there, take them
else download them into the user cache, where an address is known; else raise DataNotFound
before a pickle is opened, its sha256 must be the known one
"""

import hashlib
import os
import pickle
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pooch
from torch_geometric.data import Data, download_google_url

from lethe_lib import paths
from lethe_lib.data.canonical import canonical, graph_statistics
from lethe_lib.errors import DamagedFile, DataNotFound, InputError

GOOGLE_DRIVE = "google-drive:"


@dataclass(frozen=True)
class RawFiles:
    """The raw files of one data set.

    Attributes:
        folder: folder below a root.
        names: file names in it.
        sha256: the known hash of each file; empty where none is known.
        pickles: whether the files are Python pickles, which are opened only when their hash is the known one.
        address: the download address of a file by its name, or ``google-drive:`` and an id; None: no download.
        archive: whether the address is that of one archive with all the files in it.
    """

    folder: str
    names: tuple[str, ...]
    sha256: Mapping[str, str] = field(default_factory=dict)
    pickles: bool = False
    address: Callable[[str], str] | None = None
    archive: bool = False


@dataclass(frozen=True)
class DataSet:
    """A published data set: calling it with a root (or None) gives the canonical graph.

    Attributes:
        name: registry name.
        read: from file name -> path to a graph of any form.
        files: the raw files.
        published: published ``nodes``, ``edges`` (undirected, no loops), ``features`` and ``classes``.
        reference: the paper that it comes from.
    """

    name: str
    read: Callable[[dict[str, Path]], Data]
    files: RawFiles
    published: Mapping[str, int]
    reference: str

    def __call__(self, root: str | Path | None = None) -> Data:
        found = find_files(self.name, self.files, root)
        hashes = {name: sha256(path) for name, path in found.items()}
        altered = [name for name, digest in hashes.items() if self.files.sha256.get(name, digest) != digest]
        if altered and self.files.pickles:
            raise DamagedFile(
                f"{self.name}: {found[altered[0]]} is not the known file (its sha256 differs), and a pickle of unknown "
                "origin is never opened. Delete it and fetch the published file again"
            )
        data = self.read(found)
        data.provenance = hashes
        data = canonical(data, name=self.name)
        if altered:
            self._check_statistics(data, found[altered[0]])
        return data

    def _check_statistics(self, data: Data, path: Path) -> None:
        # Re-saved copies differ in bytes but must hold the same graph.
        counted = graph_statistics(data)
        wrong = {key: counted[key] for key, value in self.published.items() if counted[key] != value}
        if wrong:
            raise DamagedFile(
                f"{self.name}: {path} is neither the known file (its sha256 differs) nor the same graph: it has "
                f"{wrong} where {dict(self.published)} are published. Delete it and fetch it again"
            )


def search_path(root: str | Path | None = None) -> list[Path]:
    """The roots under which raw files are sought, in order: the argument, ``LETHE_DATA``, the user cache."""
    given = [root, os.environ.get("LETHE_DATA"), paths.cache() / "data"]
    return [Path(place).expanduser() for place in given if place]


def find_files(name: str, raw: RawFiles, root: str | Path | None = None) -> dict[str, Path]:
    """The raw files of a data set on this machine, downloaded into the user cache if need be.

    Args:
        name: the data set, for messages.
        raw: its files.
        root: first place to look; must exist when given.

    Returns:
        File name -> path, all in one folder.

    Raises:
        DataNotFound: naming the missing files, the places and the variable to set.
        DamagedFile: when a downloaded file is not the known one.
    """
    if root is not None and not Path(root).expanduser().is_dir():
        raise InputError(f"root {str(root)!r} is not a folder")
    sought = []
    for place in search_path(root):
        folder = place / raw.folder
        missing = [file for file in raw.names if not (folder / file).is_file()]
        if not missing:
            return {file: folder / file for file in raw.names}
        sought.append(f"{folder} lacks {', '.join(missing)}")
    advice = "Put the files there by hand, or set LETHE_DATA to the folder that holds " + raw.folder
    if raw.address is None:
        sought.append("no download address is known")
        raise DataNotFound(f"data set {name!r} was not found: {'; '.join(sought)}. {advice}")
    folder = paths.cache() / "data" / raw.folder
    try:
        download(raw, folder)
    except DamagedFile:
        raise
    except (OSError, RuntimeError) as error:  # what requests, pooch and urllib raise without a network
        sought.append(f"the download failed ({error})")
        raise DataNotFound(f"data set {name!r} was not found: {'; '.join(sought)}. {advice}") from error
    return {file: folder / file for file in raw.names}


def download(raw: RawFiles, folder: Path) -> None:
    """Fetch every file of a data set into a folder; nothing appears there before it is complete and checked."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        work = Path(temporary)
        if raw.archive:
            _fetch(raw.address(""), work, "archive")
            _extract(work / "archive", raw.names, work)
        else:
            for file in raw.names:
                _fetch(raw.address(file), work, file)
        for file in raw.names:
            known = raw.sha256.get(file)
            if raw.pickles and sha256(work / file) != known:
                raise DamagedFile(f"the downloaded {file} is not the known file: its sha256 is not {known}")
        for file in raw.names:
            os.replace(work / file, folder / file)


def _fetch(address: str, folder: Path, file: str) -> None:
    if address.startswith(GOOGLE_DRIVE):
        download_google_url(address.removeprefix(GOOGLE_DRIVE), str(folder), file, log=False)
    else:
        pooch.retrieve(address, known_hash=None, fname=file, path=folder, progressbar=False)


def _extract(archive: Path, names: tuple[str, ...], folder: Path) -> None:
    """Take the named files, and nothing else, out of a zip or tar archive, wherever in it they lie."""
    with reading(archive):
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                members = {Path(member).name: member for member in opened.namelist()}
                for name in names:
                    with opened.open(members[name]) as source, open(folder / name, "wb") as target:
                        shutil.copyfileobj(source, target)
        else:
            with tarfile.open(archive) as opened:
                members = {Path(member.name).name: member for member in opened.getmembers() if member.isfile()}
                for name in names:
                    with opened.extractfile(members[name]) as source, open(folder / name, "wb") as target:
                        shutil.copyfileobj(source, target)


def sha256(path: Path) -> str:
    """The sha256 of a file's bytes, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a parser raises on a damaged file into a DamagedFile that names the file."""
    try:
        yield
    except (
        OSError,
        ValueError,
        LookupError,
        EOFError,
        TypeError,
        zipfile.BadZipFile,
        zlib.error,
        tarfile.TarError,
        pickle.UnpicklingError,
    ) as error:
        raise DamagedFile(
            f"{path} cannot be read ({type(error).__name__}: {error}). Delete it and fetch it again"
        ) from error
