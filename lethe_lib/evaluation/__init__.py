"""Judging a released model: what it can still do, and what it leaks beyond a model that never saw the edges."""

from lethe_lib.evaluation.intervals import mean_interval, ratio_interval
from lethe_lib.evaluation.leakage import excess_over_gold
from lethe_lib.evaluation.utility import accuracy, macro_f1, posterior_distance, utility

__all__ = [
    "accuracy",
    "excess_over_gold",
    "macro_f1",
    "mean_interval",
    "posterior_distance",
    "ratio_interval",
    "utility",
]
