// SPDX-License-Identifier: Apache-2.0
#include "base/xml_reader.h"

#include <algorithm>

#include "base/text_scan.h"

namespace tacet {
namespace {

bool IsXmlSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool EndsName(char c) { return IsXmlSpace(c) || c == '/' || c == '>' || c == '='; }

// "&amp;", "&#38;", "&#x26;" at the front of `text`; what is none of these stays as it is written.
char TakeEntity(std::string_view& text) {
  static constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
  for (const auto& [name, character] : kEntities)
    if (TakeLiteral(text, name)) return character;
  std::string_view rest = text;
  uint32_t code = 0;
  if (TakeLiteral(rest, "&#") && TakeNumber(rest, &code, TakeLiteral(rest, "x") ? 16 : 10) && TakeLiteral(rest, ";") &&
      code > 0 && code < 128) {
    text = rest;
    return static_cast<char>(code);
  }
  text.remove_prefix(1);
  return '&';
}

std::string Decode(std::string_view text) {
  std::string out;
  while (!text.empty() && out.size() < XmlReader::kLongestValue) {
    if (text[0] == '&') {
      out += TakeEntity(text);
    } else {
      const std::string_view plain = text.substr(0, std::min(text.find('&'), XmlReader::kLongestValue - out.size()));
      out += plain;
      text.remove_prefix(plain.size());
    }
  }
  return out;
}

}  // namespace

std::string_view XmlReader::Get(std::string_view name) const {
  for (const Attribute& attribute : attributes_)
    if (attribute.name == name) return attribute.value;
  return {};
}

bool XmlReader::Fail(std::string reason) {
  problem_ = std::move(reason);
  at_ = text_.size();
  return false;
}

bool XmlReader::SkipTo(std::string_view end) {
  const size_t found = text_.find(end, at_);
  if (found == std::string_view::npos) return Fail("the text ends inside a tag");
  at_ = found + end.size();
  return true;
}

void XmlReader::SkipSpace() {
  while (at_ < text_.size() && IsXmlSpace(text_[at_])) ++at_;
}

bool XmlReader::Next() {
  if (!problem_.empty()) return false;
  if (self_closed_) open_.pop_back();
  self_closed_ = false;
  for (;;) {
    const size_t tag = text_.find('<', at_);
    if (tag == std::string_view::npos) {
      at_ = text_.size();
      if (!open_.empty()) return Fail("the text ends inside <" + std::string(open_.back().substr(0, 40)) + ">");
      return false;
    }
    at_ = tag;
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("<!--")) {
      if (!SkipTo("-->")) return false;
    } else if (rest.starts_with("<?")) {
      if (!SkipTo("?>")) return false;
    } else if (rest.starts_with("<!")) {
      if (rest.substr(0, std::min(rest.find('>'), rest.size())).find('[') != std::string_view::npos)
        return Fail("declarations inside the document are not read");
      if (!SkipTo(">")) return false;
    } else if (rest.starts_with("</")) {
      const size_t end = rest.find('>');
      if (end == std::string_view::npos) return Fail("the text ends inside a tag");
      const std::string_view name = Trim(rest.substr(2, end - 2));
      if (open_.empty() || open_.back() != name)
        return Fail("</" + std::string(name.substr(0, 40)) + "> closes nothing");
      open_.pop_back();
      at_ += end + 1;
    } else {
      return ReadTag();
    }
  }
}

bool XmlReader::ReadTag() {
  offset_ = at_;
  line_ += static_cast<uint32_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                            text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n'));
  counted_ = at_;
  const size_t begin = ++at_;
  while (at_ < text_.size() && !EndsName(text_[at_])) ++at_;
  name_ = text_.substr(begin, at_ - begin);
  attributes_.clear();
  if (name_.empty()) return Fail("a tag without a name");
  if (open_.size() >= kDeepest) return Fail("elements are nested too deeply");
  for (;;) {
    SkipSpace();
    if (at_ >= text_.size()) return Fail("the text ends inside a tag");
    if (text_[at_] == '>' || text_.substr(at_, 2) == "/>") break;
    if (!ReadAttribute()) return false;
  }
  self_closed_ = text_[at_] == '/';
  at_ += self_closed_ ? 2 : 1;
  open_.push_back(name_);
  depth_ = open_.size();
  return true;
}

bool XmlReader::ReadAttribute() {
  const size_t begin = at_;
  while (at_ < text_.size() && !EndsName(text_[at_])) ++at_;
  const std::string_view name = text_.substr(begin, at_ - begin);
  SkipSpace();
  if (name.empty() || at_ >= text_.size() || text_[at_] != '=') return Fail("an attribute without a value");
  ++at_;
  SkipSpace();
  if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) return Fail("a value without quotes");
  const size_t end = text_.find(text_[at_], at_ + 1);
  if (end == std::string_view::npos) return Fail("the text ends inside a value");
  if (attributes_.size() < kMostAttributes) attributes_.push_back({name, Decode(text_.substr(at_ + 1, end - at_ - 1))});
  at_ = end + 1;
  return true;
}

}  // namespace tacet
