"""One look for every figure: readable in print and on screen, and with colour-blind readers in mind."""

import matplotlib.pyplot as plt
import seaborn as sns

PALETTE = tuple(sns.color_palette("colorblind").as_hex())


def use_style() -> None:
    """Set the look of all figures of this process: light grid, colour-blind-safe colours, 11 point text, 150 dpi."""
    sns.set_theme(context="notebook", style="whitegrid", palette=PALETTE, font="DejaVu Sans")
    plt.rcParams.update(
        {
            "figure.dpi": 150,
            "savefig.dpi": 150,
            "figure.figsize": (7.0, 4.0),
            "figure.constrained_layout.use": True,
            "font.size": 11,
            "axes.titlesize": 12,
            "axes.labelsize": 11,
            "legend.fontsize": 10,
            "xtick.labelsize": 10,
            "ytick.labelsize": 10,
            "lines.linewidth": 1.8,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
