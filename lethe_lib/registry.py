"""Named collections of algorithms: one line registers an algorithm, and an unknown name gets a helpful error."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from lethe_lib.errors import InputError


class Registry(Mapping):
    """A read-only mapping from names to algorithms that users extend with :meth:`register`.

    Args:
        kind: what the entries are, in the singular, for messages ("unlearner", "attack", ...).
        entries: the built-in entries, in the order in which tables list them.

    Example:
        >>> shapes = Registry("shape", {"round": 1})
        >>> shapes.register("square", 4)
        4
        >>> list(shapes)
        ['round', 'square']
    """

    def __init__(self, kind: str, entries: Mapping[str, Any] = ()):
        self.kind = kind
        self._entries = dict(entries)

    def register(self, name: str, entry: Any) -> Any:
        """Add ``entry`` under a new name and return it; a taken name is an error, so nothing is replaced unseen."""
        if name in self._entries:
            raise InputError(f"a {self.kind} named {name!r} exists already: choose another name")
        self._entries[name] = entry
        return entry

    def __getitem__(self, name: str) -> Any:
        try:
            return self._entries[name]
        except (KeyError, TypeError):
            close = get_close_matches(str(name), self._entries, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise InputError(f"unknown {self.kind} {name!r}.{hint} Known: {', '.join(self._entries)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
