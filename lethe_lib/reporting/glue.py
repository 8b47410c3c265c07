"""Numbers and words that the prose of a chapter takes from its results.

MyST-NB renders a glued NumPy scalar as nothing, and notebooks are compared with their published outputs on other
machines. So only plain Python values leave this file, rounded to three significant digits.
"""

import math
from numbers import Integral

from myst_nb import glue

from lethe_lib.errors import InputError
from lethe_lib.reporting.claims import Claim, Finding


def rounded(value: float, digits: int = 3) -> int | float | str:
    """``value`` as a plain number with ``digits`` significant digits; counts stay exact, infinity becomes a sign.

    Args:
        value: an integer (kept as it is), or anything that ``float`` takes.
        digits: significant digits, at least 1.

    Returns:
        an int for counts and for values that keep no decimals, a float otherwise, ``"∞"`` or ``"-∞"`` when infinite.

    Raises:
        InputError: for a value that is not a number.

    Example:
        >>> rounded(0.123456), rounded(119_081), rounded(45678.9)
        (0.123, 119081, 45700)
    """
    if isinstance(value, Integral):
        return int(value)
    value = float(value)
    if math.isnan(value):
        raise InputError("a value that is not a number (NaN) cannot stand in a sentence: find out where it comes from")
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    value = float(f"{value:.{digits - 1}e}")
    return int(value) if abs(value) >= 10 ** (digits - 1) else value


def as_text(value: float | str, digits: int = 3) -> str:
    """``value`` as a sentence or a table shows it: trailing zeros kept, no exponent between 0.001 and a million.

    Example:
        >>> as_text(0.5), as_text(12.34), as_text(1234567), as_text(0.00002)
        ('0.500', '12.3', '1,234,567', '2.00e-05')
    """
    number = rounded(value, digits)
    if isinstance(number, str):
        return number
    if isinstance(number, int):
        return f"{number:,}"
    if number != 0 and abs(number) < 1e-3:
        return f"{number:.{digits - 1}e}"
    before_point = math.floor(math.log10(abs(number))) + 1 if number else 1
    return f"{number:.{digits - before_point}f}"


def fixed(value: float, digits: int, signed: bool = True) -> str:
    """Fixed decimals, with a sign if asked for; what rounds to zero has none.

    Example:
        >>> fixed(1.26, 1), fixed(-0.04, 1), fixed(0.5, 2, signed=False)
        ('+1.3', '0.0', '0.50')
    """
    text = f"{value:{'+' if signed else ''}.{digits}f}"
    return text.lstrip("+-") if float(text) == 0 else text


def interval_text(interval: tuple[float, float], digits: int = 3) -> str:
    """An interval as ``[low, high]``."""
    low, high = interval
    return f"[{as_text(low, digits)}, {as_text(high, digits)}]"


def glue_number(key: str, value: float, digits: int = 3) -> None:
    """Make ``value`` available to the prose as ``{glue:text}`key```, rounded to ``digits`` significant digits.

    Args:
        key: unique within the chapter.
        value: a number; counts stay exact.
        digits: significant digits.

    Raises:
        InputError: for a value that is not a number.
    """
    glue(key, rounded(value, digits), display=False)


def glue_text(key: str, text: str) -> None:
    """Make ``text`` available to the prose as ``{glue:text}`key```."""
    if not str(text).strip():
        raise InputError(f"the text glued as {key!r} is empty: the sentence that uses it would have a hole")
    glue(key, str(text), display=False)


def glue_claim(claim: Claim, finding: Finding) -> None:
    """Make the outcome of a claim available to the prose: ``<id>_verdict``, ``_effect``, ``_interval``, ``_detail``.

    What the finding does not have is glued as ``none``, so that a sentence never has a hole.
    """
    glue_text(f"{claim.id}_verdict", finding.verdict)
    glue_text(f"{claim.id}_effect", "none" if finding.effect is None else as_text(finding.effect))
    glue_text(f"{claim.id}_interval", "none" if finding.interval is None else interval_text(finding.interval))
    glue_text(f"{claim.id}_detail", finding.detail or "none")
