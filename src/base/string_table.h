// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tacet {

enum class StringId : uint32_t {};  // StringId{} is the empty string

// Every distinct string once; ids are dense and stable.
class StringTable {
 public:
  StringTable() { Intern(""); }
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;
  StringTable(const StringTable& other) : StringTable() {
    for (const std::string& text : other.strings_) Intern(text);  // the views of a copied map would point into `other`
  }
  StringTable& operator=(const StringTable&) = delete;

  StringId Intern(std::string_view text) {
    if (auto found = ids_.find(text); found != ids_.end()) return found->second;
    const auto id = static_cast<StringId>(strings_.size());
    strings_.emplace_back(text);
    ids_.emplace(strings_.back(), id);
    return id;
  }
  std::string_view Get(StringId id) const { return strings_[static_cast<uint32_t>(id)]; }
  size_t size() const { return strings_.size(); }

 private:
  std::deque<std::string> strings_;  // a deque never moves its elements, so the views in ids_ stay valid
  std::unordered_map<std::string_view, StringId> ids_;
};

}  // namespace tacet
