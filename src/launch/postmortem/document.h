// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tacet {

// A page of text in parts, before it becomes Markdown or HTML. All texts are plain: the renderers escape them.
struct DocumentBlock {
  enum class Kind { paragraph, list, numbered, table, code, side_by_side };
  Kind kind = Kind::paragraph;
  std::vector<std::string> items;                            // paragraph: one; list: each; code: one
  std::vector<std::vector<std::string>> rows;                // table: the first is the head
  std::vector<std::pair<std::string, std::string>> columns;  // side_by_side: title and text
};

struct DocumentSection {
  std::string title;
  std::vector<DocumentBlock> blocks;
  bool absent = false;  // all that it says is why it has nothing to show

  void Say(std::string text) { blocks.push_back({DocumentBlock::Kind::paragraph, {std::move(text)}, {}, {}}); }
  void SayAbsent(std::string text) {
    Say(std::move(text));
    absent = true;
  }
  void Code(std::string text) { blocks.push_back({DocumentBlock::Kind::code, {std::move(text)}, {}, {}}); }
  void List(std::vector<std::string> items, bool numbered = false) {
    if (items.empty()) return;
    blocks.push_back({numbered ? DocumentBlock::Kind::numbered : DocumentBlock::Kind::list, std::move(items), {}, {}});
  }
  void Table(std::vector<std::vector<std::string>> rows) {
    blocks.push_back({DocumentBlock::Kind::table, {}, std::move(rows), {}});
  }
};

struct Document {
  std::string title;
  std::vector<DocumentSection> sections;
};

std::string RenderMarkdown(const Document& document);
// One file that needs nothing else, and runs nothing.
std::string RenderDocumentHtml(const Document& document);

}  // namespace tacet
