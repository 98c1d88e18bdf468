#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_dist.py ARCH STAGE SYSROOT OUT VERSION: tarball, wheel and bill of materials from an installed tree.

STAGE is what `cmake --install` wrote. Needs the standard library alone; the same input gives the same bytes.
"""
import gzip
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import dist_elf  # noqa: E402
import dist_sbom  # noqa: E402
import dist_wheel  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]
# glibc of AlmaLinux 8, Rocky 8 and Debian 10: the oldest that PyTorch's own wheels run on.
OLDEST_GLIBC = (2, 28)
BINARIES = ("bin/tacet", "lib/libnccl-profiler-tacet.so")


def build_time():
    """The commit's time, so that two builds of one commit are the same."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    told = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False)
    return int(told.stdout) if told.returncode == 0 else int(time.time())


def files_of(stage):
    """(path inside, bytes, is a program) of every file, in order."""
    for path in sorted(stage.rglob("*")):
        if path.is_file():
            yield path.relative_to(stage).as_posix(), path.read_bytes(), os.access(path, os.X_OK)


def add_notices(stage, sysroot):
    """What is linked in comes with its licence."""
    for library in dist_sbom.LINKED:
        notice = (sysroot / "usr/share/doc" / library.notice / "copyright").read_bytes()
        place = stage / "share/doc/tacet/third-party" / f"{library.name}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(notice)


def write_tarball(out, name, stage, when):
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream, tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, data, runs in files_of(stage):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mtime, entry.mode = len(data), when, 0o755 if runs else 0o644
            tar.addfile(entry, io.BytesIO(data))
    (out / f"{name}.tar.gz").write_bytes(packed.getvalue())


def main():
    architecture, stage, sysroot, out, version = sys.argv[1], *map(pathlib.Path, sys.argv[2:5]), sys.argv[5]
    out.mkdir(parents=True, exist_ok=True)
    for binary in BINARIES:
        trouble = dist_elf.trouble(stage / binary, architecture, OLDEST_GLIBC)
        if trouble:
            sys.exit(f"{binary}: {trouble}")
    add_notices(stage, sysroot)
    name, when = f"tacet-{version}-linux-{architecture}", build_time()
    write_tarball(out, name, stage, when)
    dist_wheel.write(out, version, f"manylinux_{OLDEST_GLIBC[0]}_{OLDEST_GLIBC[1]}_{architecture}", list(files_of(stage)), when)
    (out / f"{name}.spdx.json").write_text(dist_sbom.document(name, version, architecture, sysroot, when, stage, BINARIES))


if __name__ == "__main__":
    main()
