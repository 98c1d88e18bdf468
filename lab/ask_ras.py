#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks NCCL RAS of this host for its state and keeps the answers: ask_ras.py PORT FOLDER."""
import socket
import sys


def ask(port, *lines):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as peer:
        peer.settimeout(15)
        peer.sendall("".join(line + "\n" for line in ("CLIENT PROTOCOL 2",) + lines).encode())
        answer = b""
        while part := peer.recv(65536):
            answer += part
    return answer.split(b"\n", 1)[-1]


port, folder = int(sys.argv[1]), sys.argv[2]
for name, lines in (("ras.txt", ("VERBOSE STATUS",)), ("ras.json", ("SET FORMAT json", "VERBOSE STATUS"))):
    try:
        answer = ask(port, *lines)
        open(f"{folder}/{name}", "wb").write(answer.removeprefix(b"OK\n"))
    except OSError as error:
        print(f"RAS does not answer: {error}")
