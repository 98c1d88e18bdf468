#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shape_test.py: which folder may include which, and what every source includes for itself.

Includes go one way (ARCHITECTURE.md). Tests may look further, and so may headers that only tests include.
"""
import collections
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Folders of a room: what lies in them belongs to the room. Any other folder of src/evidence is a format.
EVIDENCE = {"layers", "meaning", "told"}
# Room: the rooms it may look into, beside itself. A format looks into "evidence" for format.h and what all formats share.
ANALYSIS = {"base", "model"}
ANALYSES = {"analysis", "analysis/network", "analysis/timing", "analysis/bandwidth"}
ALLOWED = {
    "wire": set(),
    "plugin": {"wire"},
    "base": set(),
    "model": {"base"},
    "http": {"base"},
    "predict": {"base", "model"},
    "lint": {"base"},
    "format": {"base", "model", "evidence", "wire"},
    "evidence": {"base", "model", "format"},
    "analysis/network": ANALYSIS,
    "analysis/timing": ANALYSIS,
    "analysis/bandwidth": ANALYSIS | {"analysis/network", "analysis/timing", "predict"},
    "analysis": ANALYSIS | ANALYSES | {"predict"},
    "rules": ANALYSIS | ANALYSES | {"predict", "lint"},
    "report": ANALYSIS | ANALYSES | {"predict", "rules"},
    "render": ANALYSIS | ANALYSES | {"predict", "lint", "report"},
    "live": {"base", "model", "evidence", "format", "analysis", "rules", "report", "render", "http", "wire"},
    "launch": {"base", "model", "evidence", "analysis", "lint", "rules", "report", "render", "http", "live"},
    "preflight": {"base", "model", "evidence", "lint", "report", "render", "http", "launch"} | ANALYSES,
    "portable": set(),
}
ALLOWED["cli"] = set(ALLOWED) - {"plugin", "wire", "format", "portable"}


def room_of(path):
    """Of a path from the root of the sources: "rules/rule.h", "evidence/ras/ras_parse.h", "plugin/settings.h"."""
    parts = path.split("/")[:-1]
    if parts and parts[0] == "evidence":
        return "format" if len(parts) > 1 and parts[1] not in EVIDENCE else "evidence"
    if "/".join(parts[:2]) in ANALYSES:
        return "/".join(parts[:2])
    return parts[0] if parts else ""


def read_sources():
    """Path as other sources name it -> (text, paths it includes)."""
    found = {}
    for folder, prefix in (("src", ""), ("plugin", "plugin/"), ("wire", "wire/")):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".cc", ".h") or not path.is_file():
                continue
            name = prefix + path.relative_to(ROOT / folder).as_posix()
            text = path.read_text()
            found[name] = (text, re.findall(r'^#include "([^"]+)"', text, re.M))
    return found


def is_test(path):
    return path.endswith(("_test.cc", "_fuzz.cc")) or "/testing/" in path


SOURCES = read_sources()


def resolved(name, include):
    """An include is named from src, from the root, or from the source's own folder."""
    beside = name.rsplit("/", 1)[0] + "/" + include if "/" in name else include
    return include if include in SOURCES else beside if beside in SOURCES else include


def product_sources():
    """What the program is built of: every source that is no test, and all they include."""
    queue = [name for name in SOURCES if name.endswith(".cc") and not is_test(name)]
    seen = set(queue)
    while queue:
        name = queue.pop()
        for include in SOURCES[name][1]:
            include = resolved(name, include)
            if include in SOURCES and include not in seen:
                seen.add(include)
                queue.append(include)
    return seen


# Names of the standard library and the header each comes from. Only names that one library's headers bring along by chance
# and another's do not; what a source uses it includes itself, or has from one of its own project's headers.
STANDARD = [
    (r"\bstd::(sort|stable_sort|any_of|all_of|none_of|find_if|count_if|max_element|min_element|lower_bound|upper_bound|unique|reverse|rotate|transform|remove_if|nth_element|partition|clamp|minmax_element|adjacent_find|is_sorted|binary_search|set_difference|set_intersection|partial_sort|max|min)\s*[(<]", "algorithm"),
    (r"\b(std::)?(u?int(8|16|32|64)_t|uintptr_t|SIZE_MAX|U?INT(8|16|32|64)_(MAX|MIN))\b", "cstdint stdint.h inttypes.h cinttypes"),
    (r"\bstd::(string|to_string|stoi|stol|stod)\b(?!_view)", "string"),
    (r"\bstd::string_view\b", "string_view string"),
    (r"\bstd::vector\b", "vector"),
    (r"\bstd::(map|multimap)\b", "map"),
    (r"\bstd::(set|multiset)\b", "set"),
    (r"\bstd::unordered_map\b", "unordered_map"),
    (r"\bstd::unordered_set\b", "unordered_set"),
    (r"\bstd::(optional|nullopt)\b", "optional"),
    (r"\bstd::(function|hash)\b", "functional string string_view"),
    (r"\bstd::(variant|visit|holds_alternative|get_if|monostate)\b", "variant"),
    (r"\bstd::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared)\b", "memory"),
    (r"\bstd::array\b", "array"),
    (r"\bstd::span\b", "span"),
    (r"\bstd::(from_chars|to_chars)\b", "charconv"),
    (r"\bstd::(thread|this_thread)\b", "thread"),
    (r"\bstd::(mutex|lock_guard|unique_lock|scoped_lock|call_once)\b", "mutex"),
    (r"\bstd::condition_variable\b", "condition_variable"),
    (r"\bstd::(atomic|memory_order)\w*\b", "atomic"),
    (r"\bstd::chrono::", "chrono"),
    (r"\bstd::(tuple|tie|make_tuple)\b", "tuple"),
    (r"\bstd::(sqrt|pow|log2?|exp|floor|ceil|isfinite|isnan|lround|llround|fabs|erf|erfc|lgamma)\s*\(", "cmath"),
    (r"\bstd::(iota|accumulate|partial_sum|gcd)\s*\(", "numeric"),
    (r"\bstd::numeric_limits\b", "limits"),
    (r"\bstd::(memcpy|memcmp|memset|memchr|strlen|strcmp|strerror|memmove)\s*\(", "cstring"),
    (r"\bstd::(getenv|strtod|strtol|strtoul|strtoull|abort|exit|malloc|free)\s*\(", "cstdlib"),
    (r"\bstd::(printf|fprintf|snprintf|fopen|fwrite|fputs|fflush|fclose|FILE)\b", "cstdio"),
    (r"\bstd::deque\b", "deque"),
    (r"\bstd::filesystem\b", "filesystem"),
    (r"\bstd::(bad_alloc|nothrow)\b", "new"),
]


def bare(text):
    """Without comments and strings, which may name anything."""
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.S)
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)


def reachable_headers():
    """Source -> standard headers it includes itself or through headers of the project."""
    memo = {}

    def headers(name, busy=()):
        if name in memo or name in busy:
            return memo.get(name, set())
        text, includes = SOURCES[name]
        found = set(re.findall(r"^#include <([^>]+)>", text, re.M))
        for include in includes:
            include = resolved(name, include)
            if include in SOURCES:
                found |= headers(include, (*busy, name))
        memo[name] = found
        return found

    return {name: headers(name) for name in SOURCES}


class Shape(unittest.TestCase):
    def test_includes_go_one_way(self):
        wrong = []
        for name in sorted(product_sources()):
            room = room_of(name)
            self.assertIn(room, ALLOWED, f"{name}: a new room needs a line in ALLOWED")
            for include in map(lambda one, here=name: resolved(here, one), SOURCES[name][1]):
                if include not in SOURCES:
                    continue
                there = room_of(include)
                foreign = there == "format" and room == "format" and name.split("/")[1] != include.split("/")[1]
                if (there != room and there not in ALLOWED[room]) or foreign:
                    wrong.append(f"{name} includes {include}")
        self.assertEqual(wrong, [])

    def test_parsers_know_bytes_only(self):
        """*_parse turns bytes into records; what records mean is the import's."""
        wrong = []
        for name in sorted(product_sources()):
            if room_of(name) == "format" and re.search(r"_parse\.(h|cc)$", name):
                wrong += [f"{name} includes {one}" for one in SOURCES[name][1] if room_of(one) == "model"]
        self.assertEqual(wrong, [])

    def test_the_plugin_uses_no_header_of_the_tool(self):
        used = collections.Counter(room_of(resolved(name, one)) for name in SOURCES if name.startswith("plugin/") for one in SOURCES[name][1])
        self.assertEqual(set(used) - {"plugin", "wire"}, set())
        self.assertGreater(used["wire"], 0)

    def test_rules_include_no_rules(self):
        """A rule file is named after its cause and has no header; what several share has one."""
        for name, (_, includes) in SOURCES.items():
            if room_of(name) == "rules":
                for include in includes:
                    self.assertFalse(include.endswith(".cc"), f"{name} includes {include}")

    def test_a_cause_is_one_source_without_a_header(self):
        """src/rules/cause holds nothing else, and no cause stands elsewhere."""
        rule = re.compile(r"^(?:extern )?const Rule k\w+ *[{=]", re.M)
        causes = [name for name in SOURCES if name.startswith("rules/cause/") and not is_test(name)]
        self.assertGreater(len(causes), 50)
        self.assertEqual([name for name in causes if name.endswith(".h")], [])
        self.assertEqual([name for name in causes if len(rule.findall(SOURCES[name][0])) != 1], [])
        self.assertEqual([name for name in SOURCES if name not in causes and not is_test(name) and rule.search(SOURCES[name][0])], [])

    def test_no_analysis_and_no_rule_is_long(self):
        """What no longer fits is two things."""
        lengths = {name: text.count("\n") for name, (text, _) in SOURCES.items()}
        judged = [name for name in lengths if room_of(name).split("/")[0] in ("analysis", "rules") and not is_test(name)]
        self.assertGreater(len(judged), 100)
        self.assertEqual([f"{name}: {lengths[name]} lines" for name in judged if lengths[name] > 400], [])

    def test_no_folder_is_a_heap(self):
        """A folder of more than sixty sources has parts; src/rules/cause holds one source per cause and may grow."""
        sources = collections.Counter(name.rsplit("/", 1)[0] for name in SOURCES if name.endswith(".cc") and not is_test(name) and "/" in name)
        self.assertEqual([f"{folder}: {count} sources" for folder, count in sources.items() if count > 60 and folder != "rules/cause"], [])

    def test_every_source_includes_what_it_uses_of_the_standard_library(self):
        wrong = []
        reach = reachable_headers()
        for name, (text, _) in sorted(SOURCES.items()):
            code = bare(text)
            for pattern, headers in STANDARD:
                used = re.search(pattern, code)
                if used and not reach[name] & set(headers.split()):
                    wrong.append(f"{name}: {used[0].strip(' (<')} needs <{headers.split()[0]}>")
        self.assertEqual(wrong, [], f"{len(wrong)} places")


class TheCheckItself(unittest.TestCase):
    def test_comments_and_strings_are_not_code(self):
        self.assertEqual(bare('a(); // std::sort(\nb("std::sort(");').strip(), 'a(); \nb("");')
        self.assertEqual(bare('x = R"(std::sort( )";'), 'x = "";')

    def test_rooms(self):
        self.assertEqual([room_of(one) for one in ("rules/rule.h", "evidence/load.h", "evidence/told/x.h", "evidence/ras/ras_parse.h", "analysis/calls/x.h", "analysis/timing/x.h")],
                         ["rules", "evidence", "evidence", "format", "analysis", "analysis/timing"])


if __name__ == "__main__":
    unittest.main()
