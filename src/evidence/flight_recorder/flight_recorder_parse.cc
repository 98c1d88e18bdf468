// SPDX-License-Identifier: Apache-2.0
#include "evidence/flight_recorder/flight_recorder_parse.h"

#include "evidence/flight_recorder/flight_recorder_json.h"
#include "evidence/flight_recorder/flight_recorder_pickle.h"

namespace tacet {

FlightDump ParseFlightDump(std::string_view bytes, StringTable& strings) {
  FlightDump dump;
  // '{' and '[' are no pickle opcodes, so the first character decides.
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (bytes[first] == '{' || bytes[first] == '['))
    FlightJson(bytes, dump, strings).Read();
  else
    FlightPickle(bytes, dump, strings).Read();
  const bool empty = dump.entries.empty() && dump.groups.empty() && dump.statuses.empty() && !dump.has_known_key;
  if (empty && dump.ending == FlightEnding::whole) {
    dump.ending = FlightEnding::foreign;
    dump.problem = "it has none of the keys of a Flight Recorder dump";
  }
  return dump;
}

}  // namespace tacet
