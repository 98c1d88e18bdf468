// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tacet {

struct PageContent {
  std::string_view title;    // our own words only
  std::string_view plain;    // shows where scripts are not allowed (a CI server's sandbox, a mail client)
  std::string_view json;     // what the page's script lays out
  bool asks_server = false;  // a live page may ask the server it came from; a file may ask nobody
};

// One of joined_pages.h with its marks filled. Whatever the content holds, it stays data.
std::string FillPage(std::string_view page, const PageContent& content);

}  // namespace tacet
