# SPDX-License-Identifier: Apache-2.0
"""What an ELF file asks of the system it is loaded on: processor, libraries, and the version of each symbol."""
import re
import struct

MACHINES = {62: "x86_64", 183: "aarch64"}
# Part of every glibc; anything else would have to be installed first.
SYSTEM = re.compile(r"^(libc\.so\.6|libm\.so\.6|libdl\.so\.2|libpthread\.so\.0|librt\.so\.1|ld-linux.*\.so\.\d)$")
PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB, DT_VERNEED, DT_VERNEEDNUM = 1, 5, 0x6FFFFFFE, 0x6FFFFFFF


class Elf:
    def __init__(self, data):
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        self.data = data
        self.machine = MACHINES.get(struct.unpack_from("<H", data, 18)[0], "unknown")
        at, = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        segments = [struct.unpack_from("<IIQQQQQQ", data, at + i * size) for i in range(count)]
        self.loads = [(s[3], s[2], s[5]) for s in segments if s[0] == PT_LOAD]
        self.dynamic = []
        for segment in (s for s in segments if s[0] == PT_DYNAMIC):
            for place in range(segment[2], segment[2] + segment[5], 16):
                tag, value = struct.unpack_from("<QQ", data, place)
                if tag == 0:
                    break
                self.dynamic.append((tag, value))

    def offset(self, address):
        for start, offset, size in self.loads:
            if start <= address < start + size:
                return address - start + offset
        raise ValueError("an address outside of the file")

    def first(self, tag):
        return next((value for name, value in self.dynamic if name == tag), None)

    def string(self, at):
        begin = self.offset(self.first(DT_STRTAB)) + at
        return self.data[begin:self.data.index(b"\0", begin)].decode()

    def libraries(self):
        return [self.string(value) for tag, value in self.dynamic if tag == DT_NEEDED]

    def versions(self):
        """Names such as GLIBC_2.17 that the loader has to find."""
        at, found = self.first(DT_VERNEED), set()
        if at is None:
            return found
        place = self.offset(at)
        for _ in range(self.first(DT_VERNEEDNUM) or 0):
            _, count, _, aux, following = struct.unpack_from("<HHIII", self.data, place)
            entry = place + aux
            for _ in range(count):
                _, _, _, name, next_entry = struct.unpack_from("<IHHII", self.data, entry)
                found.add(self.string(name))
                entry += next_entry
            place += following
        return found


def trouble(path, architecture, oldest):
    """Why the file would not load on a system with this glibc and nothing else; empty where it does."""
    elf = Elf(path.read_bytes())
    if elf.machine != architecture:
        return f"built for {elf.machine}, not for {architecture}"
    foreign = [name for name in elf.libraries() if not SYSTEM.match(name)]
    if foreign:
        return "needs " + ", ".join(foreign)
    late = []
    for name in elf.versions():
        told = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", name)
        if not told or (int(told[1]), int(told[2])) > oldest:
            late.append(name)
    return f"needs {', '.join(sorted(late))}, newer than glibc {oldest[0]}.{oldest[1]}" if late else ""
