"""The baseline without shadow models: a small network learns from labelled nodes of the target itself who was trained on.

Reference: M. Khosla, "Impact of Graph Structure on Membership-Inference Risk for GNNs", arXiv:2601.17130.

    features of a node <- its posterior vector and its cross-entropy loss under the target model
    a share of the nodes, members and non-members alike, is given to the attacker with labels; the rest is attacked
    network: one hidden layer of 64, binary cross-entropy, Adam at 1e-3, 200 epochs, batches of 32
    report AUC and the membership advantage max(TPR - FPR) on the attacked nodes; several random divisions

The attacker is told who was a member, which is more than an outsider knows; it learns one rule for all nodes.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from lethe_lib.attacks.rates import advantage
from lethe_lib.attacks.result import AttackResult
from lethe_lib.errors import InputError
from lethe_lib.seeding import derive_seed

SMALLEST = 1e-30  # a posterior below counts as this in the loss


@dataclass(frozen=True)
class PosteriorFeaturesSettings:
    """Settings, by default those of the reference.

    Args:
        test_share: share of the nodes that is attacked; the reference uses 0.9, 0.8, 0.5 and 0.2.
        repeats: random divisions into given and attacked nodes.
        hidden, epochs, batch, learning_rate: of the attack network.
    """

    test_share: float = 0.5
    repeats: int = 3
    hidden: int = 64
    epochs: int = 200
    batch: int = 32
    learning_rate: float = 1e-3

    def __post_init__(self):
        if not 0 < self.test_share < 1 or min(self.repeats, self.hidden, self.epochs, self.batch) < 1:
            raise InputError(f"test_share must lie in (0, 1) and all numbers be at least 1; got {self}")


def posterior_features_attack(
    posteriors,
    labels,
    member,
    query: str,
    seed: int = 0,
    settings: PosteriorFeaturesSettings = PosteriorFeaturesSettings(),
) -> list[AttackResult]:
    """Attack one target model.

    Args:
        posteriors: (n, C), class probabilities of every node.
        labels: (n,) int, true classes.
        member: (n,) bool, whether the node was trained on.
        query: how the target was asked (which edges it saw), for the record.
        seed: of the divisions and of the network.
        settings: of the attack.

    Returns:
        One result per division, about the attacked nodes only: scores are membership probabilities, and ``extras`` holds
        the ``advantage``.

    Raises:
        InputError: shapes that do not match, posteriors that are no probabilities, or fewer than 4 nodes of a class.
    """
    posteriors, labels, member = np.asarray(posteriors, dtype=np.float64), np.asarray(labels), np.asarray(member)
    if posteriors.ndim != 2 or not labels.shape == member.shape == posteriors.shape[:1] or member.dtype != bool:
        raise InputError(
            f"posteriors {posteriors.shape}, labels {labels.shape} and member {member.shape} (bool) must agree on n"
        )
    if not np.allclose(posteriors.sum(1), 1, atol=1e-4) or (posteriors < 0).any():
        raise InputError("posteriors must be probabilities that add up to 1 for every node: apply softmax to logits")
    if min(member.sum(), (~member).sum()) < 4:
        raise InputError(f"the attack needs 4 members and 4 others, got {member.sum()} and {(~member).sum()}")
    own = np.take_along_axis(posteriors, labels[:, None], axis=1)
    features = np.hstack([posteriors, -np.log(np.maximum(own, SMALLEST))])
    results = []
    for repeat in range(settings.repeats):
        state = derive_seed(seed, "posterior features", repeat) % 2**32
        given, attacked = train_test_split(
            np.arange(len(member)), test_size=settings.test_share, stratify=member, random_state=state
        )
        network = MLPClassifier(
            (settings.hidden,), alpha=0.0, batch_size=min(settings.batch, len(given)), max_iter=settings.epochs,
            learning_rate_init=settings.learning_rate, n_iter_no_change=settings.epochs + 1, random_state=state,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is part of the attack
            network.fit(features[given], member[given])
        scores = network.predict_proba(features[attacked])[:, 1]
        extras = {"advantage": advantage(scores, member[attacked])}
        results.append(
            AttackResult("posterior_features", "published", attacked, scores, member[attacked], query, extras=extras)
        )
    return results
