// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tacet {

enum class NcclFunction : uint8_t {
  unknown,
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  send,
  recv,
  one_sided
};
inline constexpr int kNcclFunctions = 12;
std::string_view Name(NcclFunction function);  // "AllReduce"

struct NcclCall {
  NcclFunction function = NcclFunction::unknown;
  uint64_t op_count = 0;  // no sequence number: see README
  int64_t count = -1;     // elements; -1 where not printed
  int64_t bytes = -1;     // only in the short forms that documents show
  int32_t data_type = -1, reduction = -1, root = -1, nranks = -1;
  uint64_t comm = 0;  // address in its process, 0 where not printed
};
// Reads call lines, which are most of a log. One function's calls of one process mostly end alike, from the data type
// to the communicator, so the last ending is remembered and compared instead of read. The messages must outlive the
// reader.
class NcclCallReader {
 public:
  // Also of a DONE line, for its function and op_count. `writer` only says whose last ending to compare with: in a file
  // of all ranks, ranks take turns and each has its own address of a communicator.
  bool Parse(std::string_view message, uint32_t writer, NcclCall* call);

 private:
  struct Ending {
    std::string_view text;
    NcclCall call;
  };
  static constexpr uint32_t kWriters = 16;
  Ending endings_[kWriters][kNcclFunctions];
};
bool ParseCall(std::string_view message, NcclCall* call);
bool ParseApiCall(std::string_view message, NcclCall* call);

struct NcclInit {
  bool complete = false;
  uint64_t comm = 0, parent = 0;
  uint64_t comm_id = 0;  // 0 where not printed
  int32_t rank = -1, nranks = -1, device = -1;
  std::string_view bus_id;
  int32_t child_count = -1;  // splitCount or childCount; -1 where not printed
  bool is_split = false;
  int32_t color = 0;
};
bool ParseInit(std::string_view message, NcclInit* init);
bool ParseApiInit(std::string_view message, NcclInit* init);

struct NcclCommEnd {
  enum class Kind : uint8_t { destroy, abort, revoke } kind = Kind::destroy;
  bool complete = false;
  uint64_t comm = 0;
  int32_t rank = -1, nranks = -1;
};
bool ParseCommEnd(std::string_view message, NcclCommEnd* end);

struct NcclCommHash {
  std::string_view name;
  uint64_t hash = 0;
  int32_t nranks = -1, rank = -1;
};
bool ParseCommHash(std::string_view message, NcclCommHash* hash);

struct NcclSetting {
  std::string_view name, value;
};
bool ParseEnvironment(std::string_view message, NcclSetting* setting);

struct NcclConnection {
  int32_t channel = -1, from = -1, to = -1;
  int32_t index = -1;  // "/1" behind the channel: 0 for collectives, more for send and receive; -1 before 2.12
  enum class Direction : uint8_t { both, send, receive } direction = Direction::both;
  std::string_view via;  // "NET/IB/0(3)/GDRDMA/Shared"
  bool is_collnet = false;
};
bool ParseConnection(std::string_view message, NcclConnection* connection);
// Only the form of today's releases, by hand: of 2,048 ranks ten million lines have it. False for all others.
bool ParseChannelConnection(std::string_view message, NcclConnection* connection);
// True where the two differ in nothing but their channel.
bool IsSameWay(const NcclConnection& a, const NcclConnection& b);
// Tells the kinds of connection apart: a hash of `via` without device number, proxy rank and "/Shared".
uint64_t HashViaClass(std::string_view via);

// Walks "[0]eth0:10.0.0.1<0> [1]mlx5_1:1/RoCE [RO]": each call takes one entry off the front of `list`.
struct NcclDevice {
  std::string_view name;     // "eth0", "mlx5_1:1/RoCE"
  std::string_view address;  // "10.0.0.1", empty for an HCA
};
bool TakeDevice(std::string_view& list, NcclDevice* device);

// The code behind "->"; -1 where the line is no propagation.
int64_t ParsePropagation(std::string_view message);

}  // namespace tacet
