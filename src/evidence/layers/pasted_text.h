// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tacet {

// What people, web pages and terminals do to lines on their way into a thread. Each is undone by itself; several may
// lie upon each other (a wrapped log in a quoted reply).
enum class Paste : uint8_t {
  none,
  quoted,    // "> text", "> > text"
  escaped,   // "-&gt; 2", "&lt;0&gt;", with or without <pre> and <code> around it
  indented,  // four blanks before a block of lines, as Markdown has it; "| `text` |" in a table
  coloured,  // "[36m(worker)[0m text", "\\x1b[36m...": colours whose escape character was lost or written out
  numbered,  // "   12<tab>text", "12 | text"
  told,      // a line inside a sentence, in a text that holds no other line of a log
  wrapped,   // cut at one width, and gone on with on the next line
  repeated,  // the same block between fences a second time, as in two fields of a form
  expected,  // a block below "### Expected behavior": what somebody wishes for
  linked,    // "[train.py](http://train.py/)": what a chat or a mail program took for the name of a web site
};

// What UndoPaste does, for the user.
std::string_view DescribeUndone(Paste paste);

// Nobody pastes more than this; longer files are not looked at.
inline constexpr size_t kMostPasted = size_t{4} << 20;

Paste FindPaste(std::string_view bytes);

// The text without it. A line keeps the number it has in `bytes`.
std::string UndoPaste(std::string_view bytes, Paste paste);
}  // namespace tacet
