# SPDX-License-Identifier: Apache-2.0
"""Writes a wheel that brings a program: `pip install` puts bin/, lib/ and share/ into the environment as they are."""
import base64
import csv
import hashlib
import io
import time
import zipfile

METADATA = """Metadata-Version: 2.1
Name: tacet
Version: {version}
Summary: Names the rank that hangs, slows or breaks a distributed training job
License: Apache-2.0
Classifier: Environment :: Console
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: Distributed Computing
Requires-Python: >=3.7
Description-Content-Type: text/markdown

Tacet reads what a distributed training job left behind and names the guilty rank, the operation, the cause, the
evidence and the fix.

    tacet diagnose FOLDER
    NCCL_PROFILER_PLUGIN=$(tacet plugin-path) torchrun train.py
"""
WHEEL = """Wheel-Version: 1.0
Generator: tacet
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""
MODULE = '''# SPDX-License-Identifier: Apache-2.0
"""Where pip put the program and the plugin."""
import os
import sys
import sysconfig


def _beside(*parts):
    here = os.path.dirname(os.path.abspath(__file__))
    prefixes = [os.path.dirname(sysconfig.get_path("scripts")), sys.prefix,
                os.path.dirname(sysconfig.get_path("scripts", os.name + "_user")),
                os.path.dirname(here)]  # pip install --target
    for prefix in prefixes:
        path = os.path.join(prefix, *parts)
        if os.path.exists(path):
            return path
    raise FileNotFoundError(os.path.join(*parts) + " is not in " + ", ".join(prefixes))


def program_path():
    return _beside("bin", "tacet")


def plugin_path():
    """For NCCL_PROFILER_PLUGIN."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "libnccl-profiler-tacet.so")
'''
MAIN = '''# SPDX-License-Identifier: Apache-2.0
import os
import sys

from tacet import program_path

os.execv(program_path(), ["tacet", *sys.argv[1:]])
'''


def write(out, version, platform, files, when):
    info, data = f"tacet-{version}.dist-info", f"tacet-{version}.data"
    entries = [("tacet/__init__.py", MODULE.encode(), False), ("tacet/__main__.py", MAIN.encode(), False)]
    for path, content, runs in files:
        if path.startswith("bin/"):
            entries.append((f"{data}/scripts/{path[4:]}", content, True))
        elif not path.startswith(("lib/systemd/", "lib/tmpfiles.d/")):  # of no use inside an environment
            entries.append((f"{data}/data/{path}", content, runs))
        if path == "lib/libnccl-profiler-tacet.so":  # `pip install --target` drops data/lib
            entries.append(("tacet/libnccl-profiler-tacet.so", content, runs))
        if path.startswith("share/doc/tacet/third-party/") or path == "share/doc/tacet/copyright":
            entries.append((f"{info}/licenses/{path.rsplit('/', 1)[1]}", content, False))
    entries.append((f"{info}/METADATA", METADATA.format(version=version).encode(), False))
    entries.append((f"{info}/WHEEL", WHEEL.format(platform=platform).encode(), False))
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    for path, content, _ in entries:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.writerow((path, f"sha256={digest}", len(content)))
    rows.writerow((f"{info}/RECORD", "", ""))
    entries.append((f"{info}/RECORD", record.getvalue().encode(), False))
    stamp = time.gmtime(max(when, 315532800))[:6]  # a zip knows no time before 1980
    with zipfile.ZipFile(out / f"tacet-{version}-py3-none-{platform}.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content, runs in entries:
            entry = zipfile.ZipInfo(path, stamp)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            wheel.writestr(entry, content)
