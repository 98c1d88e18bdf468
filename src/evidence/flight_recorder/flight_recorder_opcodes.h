// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tacet {

// The opcodes that are understood: those of torch's pickler, and those that Python uses for the same objects.
// clang-format off
enum PickleOpcode : uint8_t {
  kProto = 0x80, kFrame = 0x95, kStop = '.', kMark = '(',
  kEmptyDict = '}', kEmptyList = ']', kEmptyTuple = ')',
  kSetItem = 's', kSetItems = 'u', kAppend = 'a', kAppends = 'e',
  kTuple = 't', kTuple1 = 0x85, kTuple2 = 0x86, kTuple3 = 0x87,
  kBinUnicode = 'X', kShortBinUnicode = 0x8c, kBinUnicode8 = 0x8d,
  kBinBytes = 'B', kShortBinBytes = 'C', kBinBytes8 = 0x8e,
  kBinPut = 'q', kLongBinPut = 'r', kMemoize = 0x94, kBinGet = 'h', kLongBinGet = 'j',
  kBinInt = 'J', kBinInt1 = 'K', kBinInt2 = 'M', kLong1 = 0x8a, kLong4 = 0x8b, kBinFloat = 'G',
  kNewTrue = 0x88, kNewFalse = 0x89, kNone = 'N',
};
// clang-format on

// Whether it imports, calls or constructs something. No Flight Recorder writes such an opcode; an attack needs one.
bool DoesOpcodeCall(uint8_t opcode);

// The name of an opcode that is not understood, "unknown" where it has none.
const char* NameOfRefusedOpcode(uint8_t opcode);

}  // namespace tacet
