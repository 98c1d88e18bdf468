#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutate_inputs.py [--count N] [--seed S] [--keep FOLDER] TACET SOURCE_DIR

Makes N mutated inputs out of the samples of all formats, some of them in archives, and runs `tacet diagnose` on each, and the other
commands that read such a file on some: no signal, no exit code 3, none over 10 s of processor time, none over 64 MiB + 8 bytes a byte
of input. Inputs that fail are kept. The same seed gives the same inputs."""
import argparse
import gzip
import io
import os
import random
import re
import sys
import tarfile
import tempfile
import zipfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "golden"))
from limited_run import BYTES_PER_BYTE, FREE_BYTES, run_measured  # noqa: E402  pylint: disable=wrong-import-position

MOST_SECONDS = 10
NUMBERS = (b"0", b"-1", b"1", b"255", b"65536", b"10000000", b"2147483647", b"2147483648", b"4294967295", b"9223372036854775807",
           b"18446744073709551616", b"1e308", b"-2147483648", b"0x7fffffffffffffff", b"NaN", b"")
PIECES = (b"\0", b"\xff\xfe", b"\n", b"\r\n", b"\x1b[2J", b"{", b"}", b"[", b"]", b"\"", b"\\", b"%s%n", b"A" * 5000, b"nranks 2147483647",
          b"\xe2\x80\xae", b"rank 2147483647", b"\"world_size\": 2147483648,", b"<script>", b"Traceback (most recent call last):\n")

# What else reads such a file, with the forms it writes. Benchmarks are what is left.
TIMES = ("profile", ("json", "text", "html", "csv", "perfetto"))
GRAPHS = ("topology", ("json", "text", "dot", "html"))
TUNING = ("predict", ("json", "text", "csv"))
VARIABLES = ("lint", ("json", "text"))
BENCHMARKS = ("bandwidth", ("json", "text", "html"))
READERS = {
    "black_box": (TIMES,), "flight_recorder": (TIMES,), "inspector": (TIMES,), "kernel_log": (), "nccl_log": (GRAPHS, TUNING, VARIABLES, BENCHMARKS),
    "nsys": (TIMES,), "nvidia_smi": (GRAPHS,), "pipeline_trace": (TIMES,), "ras": (), "run_record": (), "stacks": (),
    "topology_xml": (GRAPHS,), "torch_log": (VARIABLES,), "torch_trace": (TIMES,),
}


def read_samples(source):
    """Format, name and bytes of every sample."""
    found = []
    evidence = os.path.join(source, "src", "evidence")
    for folder, _, files in sorted(os.walk(evidence)):
        if f"{os.sep}samples" not in folder:
            continue
        for name in sorted(files):
            with open(os.path.join(folder, name), "rb") as file:
                found.append((os.path.relpath(folder, evidence).split(os.sep, maxsplit=1)[0], name, file.read()))
    return found


def change_bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 2, 8, 64))):
        data[rng.randrange(len(data))] = rng.choice((0, 0xff, 0x7f, 0x80, rng.randrange(256)))
    return bytes(data)


def cut(rng, data):
    return data[:rng.randrange(len(data))]


def cut_front(rng, data):
    return data[rng.randrange(len(data)):]


def repeat_part(rng, data):
    begin = rng.randrange(len(data))
    end = min(len(data), begin + rng.choice((16, 256, 4096)))
    return data[:begin] + data[begin:end] * rng.choice((2, 10, 200)) + data[end:]


def drop_part(rng, data):
    begin = rng.randrange(len(data))
    return data[:begin] + data[begin + rng.choice((1, 16, 256, 4096)):]


def put_piece(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + rng.choice(PIECES) + data[at:]


def change_number(rng, data):
    places = list(re.finditer(rb"-?\d+(?:\.\d+)?", data))
    if not places:
        return change_bytes(rng, data)
    for place in sorted(rng.sample(places, min(len(places), rng.choice((1, 3, 30)))), key=lambda m: -m.start()):
        data = data[:place.start()] + rng.choice(NUMBERS) + data[place.end():]
    return data


def change_every_number(rng, data):
    number = rng.choice(NUMBERS)
    return re.sub(rb"(?<![\w.])\d+(?![\w.])", lambda match: number if rng.random() < 0.5 else match[0], data)


def change_word(rng, data):
    """Four or eight bytes, as a number of a binary format."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 4, 32))):
        width = rng.choice((2, 4, 8))
        at = rng.randrange(max(1, len(data) // width)) * width
        value = rng.choice((0, 1, 0xffff, 0x7fffffff, 0xffffffff, 1 << 62, rng.getrandbits(63)))
        data[at:at + width] = (value & ((1 << (8 * width)) - 1)).to_bytes(width, "little")
    return bytes(data)


def shuffle_lines(rng, data):
    lines = data.splitlines(True)
    rng.shuffle(lines)
    return b"".join(lines)


def nest(rng, data):
    depth = rng.choice((10, 1000, 100000))
    at = rng.randrange(len(data))
    return data[:at] + rng.choice((b"[", b'{"a":')) * depth + data[at:]


def pack(rng, data):
    packed = gzip.compress(data, 1)
    return packed if rng.random() < 0.3 else change_bytes(rng, packed)


MUTATIONS = (change_bytes, cut, cut_front, repeat_part, drop_part, put_piece, change_number, change_number, change_every_number,
             change_word, shuffle_lines, nest, pack)


def put_into_tar(rng, members):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode=rng.choice(("w", "w:gz")), format=rng.choice((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))) as tar:
        for name, data in members:
            entry = tarfile.TarInfo(rng.choice(("", "run/", "../", "/etc/", "a" * 200 + "/")) + name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return "bundle.tar", archive.getvalue()


def put_into_zip(rng, members):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as packed:
        for i, (name, data) in enumerate(members):
            packed.writestr(f"{i}/{name}", data)
    return "bundle.zip", archive.getvalue()


def mutate(rng, samples):
    """Format, name and bytes, and how many bytes of text that is: what is packed counts unpacked."""
    fmt, name, data = rng.choice(samples)
    if rng.random() < 0.08:  # the bytes of an archive, of sound files
        members = [(name, data)] + [rng.choice(samples)[1:] for _ in range(rng.choice((0, 1, 3)))]
        name, data = rng.choice((put_into_tar, put_into_zip))(rng, members)
        text = sum(len(member) for _, member in members)
        data = rng.choice((change_bytes, change_bytes, cut, cut_front, drop_part, change_word))(rng, data)
        return fmt, name, data, max(text, len(data))
    for _ in range(rng.choice((1, 1, 2, 4))):
        data = rng.choice(MUTATIONS)(rng, data or b"x")
    if rng.random() < 0.1:  # two formats in one file
        data += rng.choice(samples)[2]
    size = text_size(data)
    if rng.random() < 0.05:  # a sound archive of mutated files
        other = rng.choice(samples)
        members = [(name, data), (other[1], rng.choice(MUTATIONS)(rng, other[2] or b"x"))]
        size = sum(text_size(member) for _, member in members)
        name, data = rng.choice((put_into_tar, put_into_zip))(rng, members)
    return fmt, name, data, max(size, len(data))


def commands_of(rng, fmt):
    commands = [["diagnose", "--format", rng.choice(("json", "json", "text", "html", "sarif", "junit"))]]
    readers = READERS.get(fmt, (BENCHMARKS,))
    if readers and rng.random() < 0.4:
        command, forms = rng.choice(readers)
        commands.append([command, "--format", rng.choice(forms)])
    if fmt in ("torch_trace", "nccl_tests") and rng.random() < 0.1:
        commands.append(["compare", "--format", rng.choice(("json", "text", "html", "junit"))])
    return commands


def trouble_of(cost, size):
    if cost.code < 0:
        return f"signal {-cost.code}"
    if cost.code not in (0, 1, 2):
        return f"exit code {cost.code}: {cost.error.strip()[:200]}"
    if cost.cpu_seconds > MOST_SECONDS:
        return f"{cost.cpu_seconds:.1f} s"
    if cost.peak_bytes > FREE_BYTES + BYTES_PER_BYTE * size:
        return f"{cost.peak_bytes >> 20} MiB for {size} bytes"
    return ""


def text_size(data):
    """What the limit counts: text that has to be unpacked counts unpacked."""
    try:
        return max(len(data), len(gzip.decompress(data))) if data[:2] == b"\x1f\x8b" else len(data)
    except (OSError, EOFError, ValueError, zlib.error):
        return 4 * len(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", default="")
    parser.add_argument("tacet")
    parser.add_argument("source")
    options = parser.parse_args()
    samples = read_samples(options.source)
    rng = random.Random(options.seed)
    troubles, runs, slowest, largest = 0, 0, 0.0, 0.0
    with tempfile.TemporaryDirectory(prefix="tacet-mutated-") as folder:
        for number in range(options.count):
            fmt, name, data, size = mutate(rng, samples)
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(data)
            for command in commands_of(rng, fmt):
                paths = [path, path] if command[0] == "compare" else [path]
                cost = run_measured([options.tacet, *command, "-j", "2", *paths], seconds=120)
                runs += 1
                slowest = max(slowest, cost.cpu_seconds)
                largest = max(largest, cost.peak_bytes / (FREE_BYTES + BYTES_PER_BYTE * size))
                trouble = trouble_of(cost, size)
                if not trouble:
                    continue
                troubles += 1
                print(f"input {number}, {name}, {' '.join(command)}: {trouble}", flush=True)
                if options.keep:
                    os.makedirs(options.keep, exist_ok=True)
                    with open(os.path.join(options.keep, f"{number}-{name}"), "wb") as file:
                        file.write(data)
            os.remove(path)
            if (number + 1) % 1000 == 0:
                print(f"{number + 1} inputs, {troubles} with trouble", file=sys.stderr, flush=True)
    print(f"{options.count} inputs of {len(samples)} samples, {runs} runs: {troubles} with trouble; at most {slowest:.1f} s and {100 * largest:.0f} % of "
          "the memory that is allowed")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
