"""Claims of chapter 09: what SCRUB does on Computers."""

from lethe_lib.errors import InputError
from lethe_lib.evaluation import mean_interval
from lethe_lib.reporting.claims import Claim, Finding
from lethe_lib.reporting.families import PRINTED, as_points, family_records
from lethe_lib.unlearning import COLLAPSE_DROP

CHAPTER = "09_distillation_family"


def check_scrub_breaks() -> Finding:
    """Change of accuracy of SCRUB on Computers under the benchmark's own form of it."""
    records = family_records()
    mine = records[(records["data"] == "computers") & (records["forget"] == "high") & (records["backbone"] == "gcn")]
    mine = mine[mine["method"] == "scrub"]
    parts, words = dict(list(mine.groupby("preset"))), []
    if "published" not in parts:
        raise InputError(
            "no record of scrub on computers, high set, preset published: run the study generic_unlearning"
        )
    for preset in sorted(parts, reverse=True):
        part = parts[preset]
        accuracy, stealing = part["accuracy_test"], part["link_stealing_auc_folded"]
        words.append(
            f"preset {preset}: accuracy {100 * accuracy.min():.1f} to {100 * accuracy.max():.1f} % over {len(part)} seeds "
            f"({as_points(part['change'].mean())} points from the original), Link Stealing {stealing.min():.3f} to "
            f"{stealing.max():.3f}, {int(part['broken'].sum())} collapsed"
        )
    change, low, high = mean_interval(parts["published"]["change"])
    verdict = "holds" if high < -COLLAPSE_DROP else "fails" if low > -COLLAPSE_DROP else "inconclusive"
    accuracy, stealing = PRINTED["computers"]["scrub"]
    detail = f"Printed: {100 * accuracy:.1f} % and {stealing:.3f}. Ours, {'; '.join(words)}."
    return Finding(verdict, change, (low, high), detail)


CLAIMS = (
    Claim(
        id="L24",
        sentence="SCRUB breaks on Computers: accuracy falls to 47.9 %, and Link Stealing rises to .839.",
        source="Lethe benchmark (arXiv:2610.21869)",
        estimand="Test accuracy of SCRUB on the retained graph minus that of the original, Computers, high 5 % set, GCN, "
        "preset published, three seeds. Breaks is read as a loss of more than ten points, the bound of the status "
        "collapsed. The rise of Link Stealing and preset corrected are reported beside it and do not decide.",
        threshold="Holds if the 95 % interval over seeds lies below minus ten points, fails if it lies above.",
        chapter=CHAPTER,
        check=check_scrub_breaks,
    ),
)
