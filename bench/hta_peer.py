# SPDX-License-Identifier: Apache-2.0
"""Holistic Trace Analysis on a folder of traces: what `tacet profile` is measured against.

usage: hta_peer.py HTA_SOURCES FOLDER

Loads the traces of all ranks, then prints the temporal breakdown and the overlap of communication with computation.
"""
import logging
import sys
import warnings

sys.path.insert(0, sys.argv[1])
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

from hta.trace_analysis import TraceAnalysis  # noqa: E402  (found through the path above)

analysis = TraceAnalysis(trace_dir=sys.argv[2])
print(analysis.get_temporal_breakdown(visualize=False).to_string())
print(analysis.get_comm_comp_overlap(visualize=False).to_string())
