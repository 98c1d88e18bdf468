# SPDX-License-Identifier: Apache-2.0
"""Starts the command of a systemd unit as systemd would, as far as that goes without it: user, capabilities, no new privileges,
limits, umask, niceness, environment and the filter of system calls. Mounts and cgroups are systemd's own.

unit_stage.py UNIT NAME...: the inner half. Loads the unit's filter of system calls into itself and becomes the command NAME..."""
import ctypes
import os
import re
import shlex
import subprocess
import sys

DYNAMIC_USER = 61184  # the first that systemd gives to a unit with DynamicUser=yes
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1  # of libseccomp; EPERM


class Unit:
    """The settings of a unit; of those that may stand there several times, all."""

    def __init__(self, path):
        self.path, self.settings = path, {}
        with open(path, encoding="utf-8") as file:
            for line in file:
                key, equals, value = line.strip().partition("=")
                if equals and not key.startswith(("#", "[")):
                    self.settings.setdefault(key, []).append(value)

    def get(self, key, default=""):
        return self.settings.get(key, [default])[-1]

    def capabilities(self):
        return [name.lower().removeprefix("cap_") for name in self.get("AmbientCapabilities").split()]

    def environment(self, root):
        """Environment= and then EnvironmentFile=, below root."""
        found = {}
        for words in self.settings.get("Environment", []):
            found.update(word.split("=", 1) for word in shlex.split(words))
        for name in self.settings.get("EnvironmentFile", []):
            path = os.path.join(root, name.removeprefix("-").lstrip("/"))
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    found.update(line.strip().split("=", 1) for line in file if "=" in line and not line.startswith("#"))
        return found

    def command(self, root):
        """${NAME} is one word, $NAME as many as are in it; the program is looked for below root."""
        words, values = [], self.environment(root)
        for word in self.get("ExecStart").split():
            if re.fullmatch(r"\$\w+", word):
                words += values.get(word[1:], "").split()
            else:
                words.append(re.sub(r"\$\{(\w+)\}", lambda name: values.get(name[1], ""), word))
        return [os.path.join(root, "usr", "bin", words[0]), *words[1:]]

    def system_calls(self):
        """Those that SystemCallFilter= leaves."""
        allowed, refused = set(), set()
        for value in self.settings["SystemCallFilter"]:
            for group in value.removeprefix("~").split():
                (refused if value.startswith("~") else allowed).update(calls_of(group))
        return (allowed | calls_of("@default")) - refused


def calls_of(group):
    """All calls of a group of systemd's, with those of the groups in it."""
    told = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=True).stdout
    names = [line.strip() for line in told.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
    return {call for name in names for call in (calls_of(name) if name.startswith("@") else [name])}


def missing_tool():
    """What is not here of what it takes; empty where all is."""
    for tool in ("systemd-analyze", "setpriv", "prlimit"):
        if subprocess.run(["which", tool], capture_output=True, check=False).returncode != 0:
            return tool
    try:
        ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return "libseccomp.so.2"
    return "" if os.geteuid() == 0 else "root"


def wrap(unit, root, script):
    """The command line that starts the unit's command below root. Script is this file, where any user may read it."""
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    bounding = ",".join(["-all"] + ["+" + name for name in unit.capabilities()])
    return ["prlimit", f"--nofile={unit.get('LimitNOFILE')}", "nice", "-n", unit.get("Nice", "0"), "setpriv",
            f"--reuid={DYNAMIC_USER}", f"--regid={DYNAMIC_USER}", "--clear-groups", f"--bounding-set={bounding}", f"--inh-caps={bounding}",
            f"--ambient-caps={bounding}", "--no-new-privs", python, script, unit.path, *unit.command(root)]


def filter_system_calls(names):
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    state = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(REFUSE)))
    for name in sorted(names):
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # others are not of this machine's kind
            library.seccomp_rule_add(state, ctypes.c_uint32(ALLOW), ctypes.c_int(number), ctypes.c_uint(0))
    if library.seccomp_load(state) != 0:
        sys.exit("the filter of system calls cannot be loaded")


if __name__ == "__main__":
    wanted = Unit(sys.argv[1])
    os.umask(int(wanted.get("UMask", "0022"), 8))
    filter_system_calls(wanted.system_calls())
    os.execv(sys.argv[2], sys.argv[2:])
