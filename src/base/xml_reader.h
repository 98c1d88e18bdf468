// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// Walks the elements of an XML text, start tag by start tag. Made for data in attributes: text between elements,
// comments, processing instructions and declarations are skipped. Nothing is expanded but the five entities of XML
// itself and character references, so that no text grows. Broken input ends the walk with a reason; what came before
// it counts.
class XmlReader {
 public:
  static constexpr size_t kDeepest = 64;
  static constexpr size_t kMostAttributes = 64;
  static constexpr size_t kLongestValue = 4096;  // the rest is cut

  struct Attribute {
    std::string_view name;
    std::string value;
  };

  explicit XmlReader(std::string_view text) : text_(text) {}

  // The next start tag; false at the end or where the text is no XML any more: see problem().
  bool Next();
  std::string_view name() const { return name_; }
  size_t depth() const { return depth_; }  // of the element just read: 1 for the root
  const std::vector<Attribute>& attributes() const { return attributes_; }
  // The attribute's value, empty where it is not given.
  std::string_view Get(std::string_view name) const;
  uint64_t offset() const { return offset_; }
  uint32_t line() const { return line_; }
  const std::string& problem() const { return problem_; }  // empty: the text was whole

 private:
  bool SkipTo(std::string_view end);
  bool ReadTag();
  bool ReadAttribute();
  bool Fail(std::string reason);
  void SkipSpace();

  std::string_view text_;
  size_t at_ = 0, counted_ = 0;
  std::string_view name_;
  std::vector<Attribute> attributes_;
  std::vector<std::string_view> open_;
  size_t depth_ = 0;
  bool self_closed_ = false;
  uint64_t offset_ = 0;
  uint32_t line_ = 1;
  std::string problem_;
};

}  // namespace tacet
