// SPDX-License-Identifier: Apache-2.0
#include "evidence/flight_recorder/flight_recorder_opcodes.h"

namespace tacet {
namespace {

struct Refused {
  const char* name;
  uint8_t opcode;
  bool calls;
};

constexpr Refused kRefused[] = {
    {"GLOBAL", 'c', true},
    {"STACK_GLOBAL", 0x93, true},
    {"REDUCE", 'R', true},
    {"BUILD", 'b', true},
    {"INST", 'i', true},
    {"OBJ", 'o', true},
    {"NEWOBJ", 0x81, true},
    {"NEWOBJ_EX", 0x92, true},
    {"PERSID", 'P', true},
    {"BINPERSID", 'Q', true},
    {"EXT1", 0x82, true},
    {"EXT2", 0x83, true},
    {"EXT4", 0x84, true},
    {"POP", '0', false},
    {"POP_MARK", '1', false},
    {"DUP", '2', false},
    {"FLOAT", 'F', false},
    {"INT", 'I', false},
    {"LONG", 'L', false},
    {"STRING", 'S', false},
    {"BINSTRING", 'T', false},
    {"SHORT_BINSTRING", 'U', false},
    {"UNICODE", 'V', false},
    {"DICT", 'd', false},
    {"LIST", 'l', false},
    {"GET", 'g', false},
    {"PUT", 'p', false},
    {"EMPTY_SET", 0x8f, false},
    {"ADDITEMS", 0x90, false},
    {"FROZENSET", 0x91, false},
    {"BYTEARRAY8", 0x96, false},
    {"NEXT_BUFFER", 0x97, false},
    {"READONLY_BUFFER", 0x98, false},
    {"PROTO", kProto, false},
};

const Refused* Find(uint8_t opcode) {
  for (const Refused& refused : kRefused)
    if (refused.opcode == opcode) return &refused;
  return nullptr;
}

}  // namespace

bool DoesOpcodeCall(uint8_t opcode) {
  const Refused* const refused = Find(opcode);
  return refused != nullptr && refused->calls;
}

const char* NameOfRefusedOpcode(uint8_t opcode) {
  const Refused* const refused = Find(opcode);
  return refused != nullptr ? refused->name : "unknown";
}

}  // namespace tacet
