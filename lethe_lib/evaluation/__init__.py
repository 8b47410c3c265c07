"""Judging a released model: what it can still do, and what it leaks beyond a model that never saw the edges."""

from lethe_lib.evaluation.intervals import mean_interval, ratio_interval
from lethe_lib.evaluation.leakage import excess_over_gold, excesses_over_gold
from lethe_lib.evaluation.paired_tests import SignedRank, cluster_bootstrap, holm, sign_test, signed_rank
from lethe_lib.evaluation.ranking import Ranking, rank_methods
from lethe_lib.evaluation.utility import accuracy, macro_f1, posterior_distance, utility

__all__ = [
    "Ranking",
    "SignedRank",
    "accuracy",
    "cluster_bootstrap",
    "excess_over_gold",
    "excesses_over_gold",
    "holm",
    "macro_f1",
    "mean_interval",
    "posterior_distance",
    "rank_methods",
    "ratio_interval",
    "sign_test",
    "signed_rank",
    "utility",
]
