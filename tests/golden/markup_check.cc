// SPDX-License-Identifier: Apache-2.0
#include "markup_check.h"

#include <algorithm>
#include <vector>

#include "base/utf8.h"

namespace tacet {
namespace {

constexpr std::string_view kNamed[] = {"lt", "gt", "amp", "quot", "apos"};

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == ':' || c == '.';
}

class XmlScan {
 public:
  explicit XmlScan(std::string_view text) : text_(text) {}

  std::string Run() {
    if (Starts("<?xml")) SkipPast("?>");
    while (error_.empty() && at_ < text_.size()) {
      if (Starts("<!--")) {
        SkipPast("-->");
      } else if (Starts("<![CDATA[")) {
        SkipPast("]]>");
      } else if (Starts("</")) {
        Close();
      } else if (Starts("<")) {
        Open();
      } else {
        Text('<', open_.empty());
      }
    }
    if (error_.empty() && !open_.empty()) Fail("<" + open_.back() + "> is never closed");
    if (error_.empty() && roots_ != 1) Fail(std::to_string(roots_) + " root elements");
    return error_;
  }

 private:
  bool Starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  void Fail(const std::string& why) {
    if (error_.empty()) error_ = why + " at offset " + std::to_string(at_);
  }
  void SkipPast(std::string_view what) {
    const size_t end = text_.find(what, at_);
    if (end == std::string_view::npos) return Fail("no '" + std::string(what) + "'");
    at_ = end + what.size();
  }
  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  std::string Name() {
    const size_t begin = at_;
    while (at_ < text_.size() && IsNameChar(text_[at_])) ++at_;
    if (at_ == begin) Fail("a name is missing");
    return std::string(text_.substr(begin, at_ - begin));
  }

  // Up to `end`, which is left where it is.
  void Text(char end, bool only_space) {
    for (; at_ < text_.size() && text_[at_] != end; ++at_) {
      if (text_[at_] == '<') return Fail("'<' in a value");
      if (only_space && text_[at_] != '\n' && text_[at_] != ' ') return Fail("text outside the root");
      if (Starts("]]>")) return Fail("']]>' in text");
      if (text_[at_] != '&') continue;
      const size_t semicolon = text_.find(';', at_);
      if (semicolon == std::string_view::npos || semicolon - at_ > 10) return Fail("a bare '&'");
      const std::string_view name = text_.substr(at_ + 1, semicolon - at_ - 1);
      if (!name.starts_with('#') && std::find(std::begin(kNamed), std::end(kNamed), name) == std::end(kNamed))
        return Fail("unknown entity '" + std::string(name) + "'");
    }
  }

  void Open() {
    ++at_;
    const std::string name = Name();
    if (open_.empty()) ++roots_;
    std::vector<std::string> attributes;
    for (SkipSpace(); error_.empty() && at_ < text_.size() && text_[at_] != '>' && text_[at_] != '/'; SkipSpace()) {
      attributes.push_back(Name());
      if (std::count(attributes.begin(), attributes.end(), attributes.back()) > 1) Fail("an attribute twice");
      if (!Starts("=\"")) return Fail("an attribute without value");
      at_ += 2;
      Text('"', false);
      ++at_;
    }
    if (Starts("/>")) {
      at_ += 2;
    } else if (Starts(">")) {
      ++at_;
      open_.push_back(name);
    } else {
      Fail("a tag does not end");
    }
  }

  void Close() {
    at_ += 2;
    const std::string name = Name();
    if (open_.empty() || open_.back() != name) return Fail("</" + name + "> closes nothing");
    open_.pop_back();
    if (!Starts(">")) return Fail("a closing tag does not end");
    ++at_;
  }

  std::string_view text_;
  size_t at_ = 0;
  int roots_ = 0;
  std::vector<std::string> open_;
  std::string error_;
};

}  // namespace

std::string FindXmlError(std::string_view xml) { return XmlScan(xml).Run(); }

std::string FindByteError(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) return "a control character at offset " + std::to_string(at);
    const size_t length = Utf8SequenceLength(text, at);
    if (length == 0) return "malformed UTF-8 at offset " + std::to_string(at);
    at += length;
  }
  return "";
}

}  // namespace tacet
