"""UnlinkToUnlearn (UtU): serve the unchanged model on the graph without the edges.

    theta' = theta;   answer f_theta(X, G_r)

Tan, Sun, Qiu, Su, Shen, "Unlink to unlearn: simplifying edge unlearning in GNNs", WWW 2024 (short papers).

The weights still depend on the forgotten edges, and whoever may put a pair back into the query graph gets the original
answer exactly. So it is the control for what unlinking alone achieves: a method that scores like it has done nothing
more. The benchmark's row ``Identity`` is this method.
"""

from lethe_lib.unlearning.controls import NoSettings, keep
from lethe_lib.unlearning.result import Unlearner

UNLINK = Unlearner(
    keep,
    {"corrected": NoSettings(), "published": NoSettings()},
    "graph-native",
    "Tan, Sun, Qiu, Su, Shen, WWW 2024",
)
