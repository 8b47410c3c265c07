"""Parameters of a chapter: what its parameters cell declares, and whether given values fit.

    declared = annotated literal assignments of the cell tagged `parameters`
    for every given name: refuse it if undeclared, with the closest declared name
    for every given value: refuse it if its type is not the declared one; text is read as the declared type first
    in a running notebook: the same for the values that papermill injected and for edits by hand

Papermill itself only warns of unknown names and passes `1e-2` of a YAML file on as text, so both are caught here,
before anything is computed. So are, for all commands, numbers that are too small and folders that cannot be written.
"""

import argparse
import ast
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import yaml

from lethe_lib.errors import InputError

_TYPE_NAMES = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "list": list,
    "tuple": tuple,
    "None": None,
}


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell.

    Args:
        name: of the variable.
        type: the annotated type, such as ``int``, ``list[int]``, ``tuple[str, ...]`` or ``str | None``.
        annotation: the type as written.
        default: the literal value.
        help: the comment at the end of the line.
    """

    name: str
    type: Any
    annotation: str
    default: Any
    help: str


def declared_parameters(source: str) -> dict[str, Parameter]:
    """The parameters that the text of a parameters cell declares, by name.

    Args:
        source: lines like ``seed: int = 0  # random seed`` and nothing else but comments.

    Raises:
        InputError: for a line that is not an annotated literal, an annotation that is not understood, a default that
            does not fit its annotation, or a missing comment.

    Example:
        >>> declared_parameters("k: int = 2  # length of the walks")["k"].help
        'length of the walks'
    """
    lines = source.splitlines()
    parameters = {}
    for statement in ast.parse(source).body:
        written = ast.unparse(statement)
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value):
            raise InputError(f"parameters cell: write {written!r} as `name: type = literal  # comment`")
        annotation = ast.unparse(statement.annotation)
        try:
            expected = eval(annotation, {"__builtins__": {}}, _TYPE_NAMES)  # names are limited to those above
            default = ast.literal_eval(statement.value)
        except (NameError, ValueError, TypeError, SyntaxError, AttributeError):
            raise InputError(f"parameters cell: {written!r} needs a plain type and a literal value") from None
        name = statement.target.id
        if not _fits(default, expected):
            raise InputError(f"parameters cell: the default of {name!r} is {default!r}, which is not {annotation}")
        comment = lines[statement.end_lineno - 1][statement.end_col_offset :].strip().removeprefix("#").strip()
        if not comment:
            raise InputError(f"parameters cell: end the line of {name!r} with a comment that says what it is")
        parameters[name] = Parameter(name, expected, annotation, default, comment)
    return parameters


def checked_values(given: Mapping[str, Any], declared: Mapping[str, Parameter], where: str) -> dict[str, Any]:
    """The given values, each of its declared type; text such as ``"1e-2"``, ``"true"`` or ``"[3, 4]"`` is read.

    Args:
        given: parameter name -> value, from Python, a YAML file or a command line.
        declared: as returned by :func:`declared_parameters`.
        where: what the parameters belong to, for messages, such as ``"chapter 06_walk_centrality"``.

    Raises:
        InputError: for an undeclared name or a value that is not of the declared type.
    """
    _refuse_unknown(given, declared, where)
    values = {}
    for name, value in given.items():
        expected = declared[name].type
        if isinstance(value, str):
            value = _read(value, expected)
        if not _fits(value, expected):
            raise InputError(_wrong_type(declared[name], given[name], where))
        values[name] = float(value) if expected is float else value
    return values


def check_parameters(namespace: MutableMapping[str, Any]) -> None:
    """Refuse unknown and wrongly typed parameters of the running notebook; call it first in the setup cell.

    Reads the parameters cell (the latest cell of annotated literals only) and the cell that papermill injected from the
    history of the kernel. Without a history there is nothing to check: outside a kernel nothing is injected, and nbval,
    which keeps no history, repeats a run whose parameters were checked.

    Args:
        namespace: ``globals()`` of the notebook.

    Raises:
        InputError: for an injected name that the parameters cell does not declare, or a value that is not of the
            declared type.
    """
    history = [source for source in namespace.get("In", []) if source]
    if not history:
        return
    declared, injected = {}, []
    for source in history:
        names = _assigned_names(source)
        if source.startswith("# Parameters"):
            injected = names
        elif names and _is_parameters_cell(source):
            declared = declared_parameters(source)
    if not declared:
        raise InputError("no parameters cell has run: run the cell tagged `parameters` before this one")
    _refuse_unknown(injected, declared, "this chapter")
    for parameter in declared.values():
        value = namespace[parameter.name]
        if not _fits(value, parameter.type):
            raise InputError(_wrong_type(parameter, value, "this chapter"))


def at_least(least: int) -> Callable[[str], int]:
    """The ``type`` of an option of a command that takes a whole number not below ``least``.

    Example:
        >>> at_least(1)("3")
        3
    """

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least {least}")
        return value

    return read


def writable_folder(folder: Path | str, option: str) -> Path:
    """The folder itself, if files can be written into it now or once it is made; it is not made here.

    Args:
        folder: that a command will write to. option: that names it, such as ``--records``, for the message.

    Raises:
        InputError: the folder, or what stands in its place, is no folder or cannot be written.
    """
    folder = Path(folder)
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
    if not there.is_dir():
        raise InputError(f"{there} is no folder: choose another one with {option}")
    try:
        tempfile.TemporaryFile(dir=there).close()  # tells more than the permission bits, which do not bind everybody
    except OSError as error:
        raise InputError(
            f"{there} cannot be written ({error.strerror}): choose another folder with {option}, or change its permissions"
        ) from None
    return folder


def _assigned_names(source: str) -> list[str]:
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a cell with a magic command assigns no parameters
        return []
    targets = [
        target
        for statement in body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
    ]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _is_parameters_cell(source: str) -> bool:
    return all(isinstance(statement, ast.AnnAssign) for statement in ast.parse(source).body)


def _refuse_unknown(given: Iterable[str], declared: Mapping[str, Parameter], where: str) -> None:
    for name in given:
        if name not in declared:
            close = get_close_matches(str(name), declared, n=1)  # a name in a YAML file may be a number
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise InputError(f"{where} has no parameter {name!r}.{hint} It has: {', '.join(declared) or 'none'}")


def _wrong_type(parameter: Parameter, value: Any, where: str) -> str:
    hint = ""
    if parameter.type is float and isinstance(value, str) and isinstance(_read(value, float), float):
        hint = " In a YAML file write 1.0e-2, not 1e-2."
    return (
        f"parameter {parameter.name!r} of {where} must be {parameter.annotation} ({parameter.help}), "
        f"but is {value!r} ({type(value).__name__}).{hint}"
    )


def _fits(value: Any, expected: Any) -> bool:
    """Whether ``value`` is of the type ``expected``; an int is a float, but a bool is no number."""
    if expected is None or expected is NoneType:
        return value is None
    origin, arguments = get_origin(expected), get_args(expected)
    if origin in (Union, UnionType):
        return any(_fits(value, option) for option in arguments)
    if origin is list:
        return isinstance(value, list) and all(_fits(item, arguments[0]) for item in value)
    if origin is tuple:
        items = [arguments[0]] * len(value) if arguments[1:] == (...,) and isinstance(value, tuple) else arguments
        return isinstance(value, tuple) and len(value) == len(items) and all(map(_fits, value, items))
    if expected in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if expected is float else expected)


def _read(text: str, expected: Any) -> Any:
    """``text`` read as ``expected`` where that is possible, else unchanged; a wanted text stays as it is."""
    if text.lower() in ("null", "none") and _fits(None, expected):
        return None
    if _fits(text, expected):
        return text
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return _numbers(value, expected)


def _numbers(value: Any, expected: Any) -> Any:
    """YAML takes ``1e-2`` for text: turn such text into the number that ``expected`` asks for."""
    origin, arguments = get_origin(expected), get_args(expected)
    if origin is list and isinstance(value, list):
        return [_numbers(item, arguments[0]) for item in value]
    if origin is tuple and isinstance(value, list):
        return tuple(_numbers(item, arguments[0]) for item in value)
    if origin in (Union, UnionType) and isinstance(value, str):
        return next((read for option in arguments if _fits(read := _numbers(value, option), expected)), value)
    if expected is float and isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value
