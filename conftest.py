"""Set-up of every pytest run, here so that it holds for tests/ and for notebooks that nbval validates.

Notebooks are compared with their published outputs, except for what differs between runs and says nothing: tables as HTML
(their plain text is compared), drawings, and warnings, which carry process numbers.
"""

from lethe_lib.environment import prepare_environment

prepare_environment()  # before torch and numba are imported; kernels inherit it


def pytest_collectstart(collector):
    """Extend what nbval leaves out of the comparison."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += (
            "text/html",
            "image/svg+xml",
            "stderr",
            "application/papermill.record/image/png",
            "application/papermill.record/image/svg+xml",
        )
