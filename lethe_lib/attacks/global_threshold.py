"""The baseline that knows nothing about single nodes: one threshold on the raw statistic for all nodes.

    for every fold of trials:
        threshold <- the one that maximises TPR - FPR over all (trial, node) pairs of the other folds
        member iff statistic > threshold, for every node in the trials of the fold

S. Yeom et al., "Privacy risk in machine learning", arXiv:1709.01604, threshold the loss in this way. Nodes that are easy to
classify look like members and hard ones do not, whether they were sampled or not.
"""

import numpy as np

from lethe_lib.attacks.likelihood_ratio import check_trials
from lethe_lib.attacks.node_membership import ErrorCounts, best_thresholds, count_errors
from lethe_lib.errors import InputError


def global_threshold_test(statistics, member, folds: int = 10) -> ErrorCounts:
    """Errors per node of one threshold for all nodes.

    Args:
        statistics: (T, n) float, higher = more confident, as members tend to be.
        member: (T, n) bool.
        folds: trial t is in fold t mod folds.

    Returns:
        Counts of every node; ``no_in`` and ``no_out`` where a node was never or always in the training data.
    """
    values, member, fold = check_trials(statistics, member, folds)
    if values.shape[2] != 1:
        raise InputError(f"one threshold needs one statistic per node, got {values.shape[2]}")
    says = np.zeros(member.shape, dtype=bool)
    for one in range(folds):
        rest = fold != one
        if member[rest].all() or not member[rest].any():
            raise InputError(f"the trials outside fold {one} hold one class only: run more trials, or use fewer folds")
        limit = best_thresholds(values[rest].reshape(-1, 1), member[rest].reshape(-1, 1))[0]
        says[~rest] = values[~rest, :, 0] > limit
    status = np.where(member.all(0), "no_out", np.where(member.any(0), "ok", "no_in"))
    return count_errors(says, member, status)
