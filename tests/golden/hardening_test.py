#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hardening_test.py TACET PLUGIN BUILD_TYPE: what the ELF headers of program and plugin say of the protections in them."""
import struct
import sys
import unittest

TACET, PLUGIN, BUILD_TYPE = sys.argv[1:4]
PT_LOAD, PT_DYNAMIC, PT_GNU_STACK, PT_GNU_RELRO = 1, 2, 0x6474e551, 0x6474e552
DT_NULL, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_TEXTREL, DT_FLAGS, DT_FLAGS_1 = 0, 5, 6, 10, 22, 30, 0x6ffffffb
DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 8, 1, 0x08000000
ET_DYN = 3


class Elf:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        assert self.data[:5] == b"\x7fELF\x02", path
        self.kind, = struct.unpack_from("<H", self.data, 16)
        at, = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        # type, flags, offset, address, physical address, bytes in the file, bytes in memory, alignment
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.data, at + i * size) for i in range(count)]
        self.dynamic = {}
        for segment in self.of_kind(PT_DYNAMIC):
            for place in range(segment[2], segment[2] + segment[5], 16):
                tag, value = struct.unpack_from("<QQ", self.data, place)
                if tag == DT_NULL:
                    break
                self.dynamic[tag] = value

    def of_kind(self, kind):
        return [segment for segment in self.segments if segment[0] == kind]

    def imports(self, name):
        for segment in self.of_kind(PT_LOAD):
            begin = self.dynamic[DT_STRTAB] - segment[3]
            if 0 <= begin < segment[5]:
                strings = self.data[segment[2] + begin:segment[2] + begin + self.dynamic[DT_STRSZ]]
                return b"\0" + name.encode() + b"\0" in strings
        return False


class Hardening(unittest.TestCase):
    def check(self, path):
        elf = Elf(path)
        self.assertEqual(elf.kind, ET_DYN, "can be loaded anywhere")
        (stack,) = elf.of_kind(PT_GNU_STACK)
        self.assertEqual(stack[1] & 1, 0, "the stack is not executable")
        self.assertEqual(len(elf.of_kind(PT_GNU_RELRO)), 1)
        now = elf.dynamic.get(DT_FLAGS, 0) & DF_BIND_NOW or elf.dynamic.get(DT_FLAGS_1, 0) & DF_1_NOW
        self.assertTrue(now, "all symbols are bound before main, and their table is read-only then")
        self.assertNotIn(DT_TEXTREL, elf.dynamic)
        for segment in elf.of_kind(PT_LOAD):
            self.assertNotEqual(segment[1] & 3, 3, "nothing is both writable and executable")
        return elf

    def test_the_program(self):
        elf = self.check(TACET)
        self.assertTrue(elf.dynamic.get(DT_FLAGS_1, 0) & DF_1_PIE)
        if BUILD_TYPE == "Release":
            self.assertTrue(elf.imports("__stack_chk_fail"), "stack protector")
            self.assertTrue(elf.imports("__snprintf_chk") or elf.imports("__memcpy_chk"), "_FORTIFY_SOURCE")

    def test_the_plugin(self):
        elf = self.check(PLUGIN)
        self.assertTrue(elf.imports("__stack_chk_fail"), "stack protector")
        self.assertTrue(elf.imports("__snprintf_chk"), "_FORTIFY_SOURCE")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
