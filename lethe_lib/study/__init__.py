"""From a configuration to a record, from records to a published study, from a notebook to a book."""

from lethe_lib.study.configuration import (
    STAGE_VERSION,
    Configuration,
    DisplacementConfiguration,
    Measurement,
    UnlearningConfiguration,
)
from lethe_lib.study.records import excess_frame, load_records, publish
from lethe_lib.study.runner import run, run_all
from lethe_lib.study.store import RecordStore
from lethe_lib.study.studies import STUDIES

__all__ = [
    "STAGE_VERSION",
    "STUDIES",
    "Configuration",
    "DisplacementConfiguration",
    "Measurement",
    "RecordStore",
    "UnlearningConfiguration",
    "excess_frame",
    "load_records",
    "publish",
    "run",
    "run_all",
]
