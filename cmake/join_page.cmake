# SPDX-License-Identifier: Apache-2.0
# Joins the page, its style and its scripts into one C++ source: cmake -DWEB=dir -DOUT=file -P join_page.cmake
# The page carries a content security policy that names the two hashes, so nothing but this very script and style can run,
# whatever the report holds.

set(scripts dom.js data_table.js rank_grid.js wait_graph.js live.js report.js)

# 64 hex digits -> base64, the form a policy wants.
function(base64_of_hex hex out)
  set(alphabet ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  set(text "")
  foreach(at RANGE 0 54 6)
    string(SUBSTRING "${hex}" ${at} 6 piece)
    math(EXPR bits "0x${piece}")
    foreach(shift 18 12 6 0)
      math(EXPR index "(${bits} >> ${shift}) & 63")
      string(SUBSTRING ${alphabet} ${index} 1 letter)
      string(APPEND text ${letter})
    endforeach()
  endforeach()
  string(SUBSTRING "${hex}" 60 4 piece)  # two bytes are left
  math(EXPR bits "0x${piece} << 2")
  foreach(shift 12 6 0)
    math(EXPR index "(${bits} >> ${shift}) & 63")
    string(SUBSTRING ${alphabet} ${index} 1 letter)
    string(APPEND text ${letter})
  endforeach()
  set(${out} "${text}=" PARENT_SCOPE)
endfunction()

file(READ ${WEB}/report.html page)
file(READ ${WEB}/report.css style)
set(script "(() => {\n\"use strict\";\n")
foreach(name ${scripts})
  file(READ ${WEB}/${name} part)
  string(APPEND script "${part}")
endforeach()
string(APPEND script "})();\n")

string(SHA256 style_hash "${style}")
string(SHA256 script_hash "${script}")
base64_of_hex(${style_hash} style_hash)
base64_of_hex(${script_hash} script_hash)
string(REPLACE "{{style-hash}}" "${style_hash}" page "${page}")
string(REPLACE "{{script-hash}}" "${script_hash}" page "${page}")
string(REPLACE "{{style}}" "${style}" page "${page}")
string(REPLACE "{{script}}" "${script}" page "${page}")

set(source "// Made by cmake/join_page.cmake from web/. Do not edit.\n#include \"render/report_page.h\"\n\nnamespace tacet {\n\n")
string(APPEND source "std::string_view ReportPage() {\n  static constexpr std::string_view kPage = R\"tacet_page(${page})tacet_page\";\n")
string(APPEND source "  return kPage;\n}\n\n}  // namespace tacet\n")
file(WRITE ${OUT} "${source}")
