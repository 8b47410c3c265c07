"""Named collections of algorithms: one line registers an algorithm, and an unknown name gets a helpful error."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from numbers import Real
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
            raise InputError(f"{self.kind} {name!r} exists already: choose another name")
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


def changed(name: str, settings: Any, changes: Mapping[str, Any]) -> Any:
    """Settings with some fields replaced.

    Args:
        name: whose settings they are, for messages. settings: a frozen dataclass. changes: field -> value.

    Raises:
        InputError: a field does not exist, a number is negative or none, or the dataclass refuses a value.
    """
    known = [field.name for field in fields(settings)]
    unknown = sorted(set(changes) - set(known))
    if unknown:
        raise InputError(f"{name} has no setting {', '.join(unknown)}. It has: {', '.join(known) or 'none'}")
    message = name + ": {}={!r} must be a number that is not negative"
    numbers = {field: value for field, value in changes.items() if _is_number(value)}
    for field, value in changes.items():
        if _is_number(getattr(settings, field)) and field not in numbers and value is not None:
            raise InputError(message.format(field, value))
    new = replace(settings, **changes)  # may refuse a value itself, and say why
    for field, value in numbers.items():
        if not value >= 0:
            raise InputError(message.format(field, value))
    return new


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def of_preset(name: str, presets: Mapping[str, Any], preset: str, changes: Mapping[str, Any]) -> Any:
    """The settings that ``name`` has under a preset, with some fields replaced; an unknown preset is an InputError."""
    if preset not in presets:
        raise InputError(f"{name} has no preset {preset!r}: choose {' or '.join(presets)}")
    return changed(name, presets[preset], changes)
