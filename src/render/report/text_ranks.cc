// SPDX-License-Identifier: Apache-2.0
#include "render/report/text_ranks.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "render/render_words.h"

namespace tacet {
namespace {

constexpr size_t kMostGuiltyRows = 12;  // beyond it guilty ranks fold as well: half of the table is left for the others
constexpr size_t kRankListChars = 18;

int OrderOf(const ReportRank& rank) {
  if (rank.of_verdict || rank.role == "guilty" || rank.role == "suspect") return 0;
  if (rank.role == "silent") return 1;
  if (rank.role == "waits") return 2;
  return rank.role == "ok" ? 4 : 3;
}

Ink InkOfRole(std::string_view role) {
  if (role == "guilty") return Ink::red;
  return role == "silent" || role == "suspect" ? Ink::yellow : Ink::plain;
}

std::string RoleWords(std::string_view role) {
  return role == "guilty" ? "at fault" : role == "silent" ? "not seen" : CleanLine(role);
}

// How much of a rank tells one row from another.
enum class Detail { role, operation, doing, all };

using RowKey = std::tuple<int, std::string, std::string, std::string, std::string>;

RowKey KeyOf(const ReportRank& rank, Detail detail) {
  RowKey key{OrderOf(rank), rank.role, "", "", ""};
  if (detail >= Detail::operation) std::get<2>(key) = rank.last_operation;
  if (detail >= Detail::doing) std::get<3>(key) = rank.doing;
  if (detail >= Detail::all) std::get<4>(key) = rank.host + '\n' + rank.last_sign;
  return key;
}

using Rows = std::map<RowKey, std::vector<const ReportRank*>>;

Rows Fold(const std::vector<ReportRank>& ranks, Detail guilty, Detail others) {
  Rows rows;
  for (const ReportRank& rank : ranks) rows[KeyOf(rank, rank.role == "guilty" ? guilty : others)].push_back(&rank);
  return rows;
}

size_t GuiltyRows(const Rows& rows) {
  return static_cast<size_t>(
      std::count_if(rows.begin(), rows.end(), [](const auto& row) { return std::get<0>(row.first) == 0; }));
}

Rows FoldUntilItFits(const std::vector<ReportRank>& ranks) {
  Rows rows;
  for (const Detail others : {Detail::doing, Detail::operation, Detail::role}) {
    for (const Detail guilty : {Detail::doing, Detail::operation, Detail::role}) {
      rows = Fold(ranks, guilty, others);
      if (GuiltyRows(rows) <= kMostGuiltyRows) break;
    }
    if (rows.size() <= kMostRankRows) return rows;
  }
  return rows;
}

// The value all share, or a word for how much they differ: "3 hosts", "differ".
template <typename Get>
std::string Shared(const std::vector<const ReportRank*>& ranks, Get get, std::string_view noun) {
  std::set<std::string_view> values;
  for (const ReportRank* rank : ranks) values.insert(get(*rank));
  if (!noun.empty() && values.size() > 1) values.erase("");  // an unknown host is not another one
  if (values.size() == 1) return CleanLine(*values.begin());
  constexpr size_t kShortNames = 24;
  if (const std::string_view one = *values.begin(), two = *values.rbegin();
      !noun.empty() && values.size() == 2 && one.size() + two.size() <= kShortNames)
    return CleanLine(one) + ", " + CleanLine(two);
  return noun.empty() ? "(differ)" : Count(values.size(), noun);
}

std::string SharedSign(const std::vector<const ReportRank*>& ranks) {
  std::string_view first, last;
  for (const ReportRank* rank : ranks) {
    const std::string_view sign = rank->last_sign;
    if (sign.empty()) continue;
    if (first.empty() || sign < first) first = sign;
    if (last.empty() || sign > last) last = sign;
  }
  if (first == last) return CleanLine(first);
  return CleanLine(first) + " .. " + CleanLine(last);
}

std::string RankCell(const std::vector<const ReportRank*>& ranks, bool verbose) {
  std::vector<int> numbers;
  numbers.reserve(ranks.size());
  for (const ReportRank* rank : ranks) numbers.push_back(rank->rank);
  std::string cell = FoldRanks(numbers, verbose ? 0 : kRankListChars);
  if (cell.ends_with("...")) cell += " (" + std::to_string(numbers.size()) + ")";
  return cell;
}

constexpr size_t kHostColumn = 1, kOperationColumn = 3, kSignColumn = 5;

size_t NaturalWidth(const std::vector<TextRow>& table) {
  size_t width = 0;
  for (size_t column = 0; column < table[0].size(); ++column) {
    size_t widest = 0;
    for (size_t row = 1; row < table.size(); ++row) widest = std::max(widest, DisplayWidth(table[row][column].text));
    if (widest > 0) width += (width > 0 ? 2 : 0) + std::max(widest, DisplayWidth(table[0][column].text));
  }
  return width;
}

// Where there is no room for it, the number of an operation matters more than the whole id of its communicator:
// "all_reduce #272 on communicator 0x8221f841..." and "all_reduce #48 on ranks 0, 2, 4, 6".
void ShortenOperation(std::string& operation) {
  constexpr std::string_view kMembers = "communicator of ranks ", kId = "communicator 0x";
  constexpr size_t kDigits = 8;
  if (const size_t at = operation.find(kMembers); at != std::string::npos) operation.erase(at, kMembers.find("ranks"));
  const size_t id = operation.find(kId);
  if (id == std::string::npos) return;
  const size_t begin = id + kId.size();
  const size_t end = std::min(operation.find_first_not_of("0123456789abcdef", begin), operation.size());
  if (end - begin > kDigits + 3) operation.replace(begin + kDigits, end - begin - kDigits, "...");
}

// Columns that say the same of every row go, where the heading names the host; and before operations and frames are
// cut, those that tell least: the one host of all, then the last signs.
void LeaveOutColumns(std::vector<TextRow>& table, size_t width, bool host_named) {
  const auto clear = [&](size_t column) {
    for (size_t row = 1; row < table.size(); ++row) table[row][column].text.clear();
  };
  const auto same = [&](size_t column) {
    return std::all_of(table.begin() + 1, table.end(),
                       [&](const TextRow& row) { return row[column].text == table[1][column].text; });
  };
  std::set<std::string_view> hosts;  // a rank whose host is not known is on no other one
  for (size_t row = 1; row < table.size(); ++row) hosts.insert(table[row][kHostColumn].text);
  hosts.erase("");
  if (hosts.size() == 1 && ((same(kHostColumn) && host_named) || NaturalWidth(table) > width)) clear(kHostColumn);
  if (table.size() > 2 && same(kSignColumn)) clear(kSignColumn);
  if (NaturalWidth(table) > width) clear(kSignColumn);
  if (NaturalWidth(table) > width)
    for (size_t row = 1; row < table.size(); ++row) ShortenOperation(table[row][kOperationColumn].text);
}

}  // namespace

std::vector<TextRow> LayOutRanks(const std::vector<ReportRank>& ranks, size_t width, bool verbose, bool host_named) {
  const Rows folded = verbose ? Fold(ranks, Detail::all, Detail::all) : FoldUntilItFits(ranks);
  std::vector<const Rows::value_type*> rows;
  for (const auto& row : folded) rows.push_back(&row);
  // A few silent ranks may be what is waited for. Where most are silent, what is known of the others comes first.
  const auto silent = std::count_if(ranks.begin(), ranks.end(), [](const auto& rank) { return rank.role == "silent"; });
  const bool most = 2 * static_cast<size_t>(silent) >= ranks.size();
  const auto place = [&](const Rows::value_type& row) {
    constexpr int kLast = 5;
    return std::tuple(most && std::get<1>(row.first) == "silent" ? kLast : std::get<0>(row.first), row.second[0]->rank);
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) { return place(*a) < place(*b); });
  const bool too_many = !verbose && rows.size() > kMostRankRows;  // only a report that invents many roles gets here
  if (too_many) rows.resize(kMostRankRows - 1);

  std::vector<TextRow> table;
  table.push_back({{"RANK", Ink::dim, true},
                   {"HOST", Ink::dim},
                   {"ROLE", Ink::dim},
                   {"OPERATION", Ink::dim},
                   {"STATE", Ink::dim},
                   {"LAST SEEN", Ink::dim, true}});
  for (const auto* row : rows) {
    const auto& members = row->second;
    const std::string& role = members[0]->role;
    table.push_back({{RankCell(members, verbose), InkOfRole(role)},
                     {Shared(
                         members, [](const ReportRank& rank) { return std::string_view(rank.host); }, "host")},
                     {RoleWords(role), InkOfRole(role)},
                     {Shared(
                         members, [](const ReportRank& rank) { return std::string_view(rank.last_operation); }, "")},
                     {Shared(
                         members, [](const ReportRank& rank) { return std::string_view(rank.doing); }, "")},
                     {SharedSign(members)}});
  }
  if (too_many) table.push_back({{"..."}, {}, {}, {}, {}, {}});
  if (!verbose) LeaveOutColumns(table, width, host_named);
  return table;
}

}  // namespace tacet
