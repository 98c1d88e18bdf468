// SPDX-License-Identifier: Apache-2.0
#include "evidence/flight_recorder/flight_recorder_opcodes.h"

namespace tacet {
namespace {

struct Refused {
  uint8_t opcode;
  const char* name;
  bool calls;
};

constexpr Refused kRefused[] = {
    {'c', "GLOBAL", true},
    {0x93, "STACK_GLOBAL", true},
    {'R', "REDUCE", true},
    {'b', "BUILD", true},
    {'i', "INST", true},
    {'o', "OBJ", true},
    {0x81, "NEWOBJ", true},
    {0x92, "NEWOBJ_EX", true},
    {'P', "PERSID", true},
    {'Q', "BINPERSID", true},
    {0x82, "EXT1", true},
    {0x83, "EXT2", true},
    {0x84, "EXT4", true},
    {'0', "POP", false},
    {'1', "POP_MARK", false},
    {'2', "DUP", false},
    {'F', "FLOAT", false},
    {'I', "INT", false},
    {'L', "LONG", false},
    {'S', "STRING", false},
    {'T', "BINSTRING", false},
    {'U', "SHORT_BINSTRING", false},
    {'V', "UNICODE", false},
    {'d', "DICT", false},
    {'l', "LIST", false},
    {'g', "GET", false},
    {'p', "PUT", false},
    {0x8f, "EMPTY_SET", false},
    {0x90, "ADDITEMS", false},
    {0x91, "FROZENSET", false},
    {0x96, "BYTEARRAY8", false},
    {0x97, "NEXT_BUFFER", false},
    {0x98, "READONLY_BUFFER", false},
    {kProto, "PROTO", false},
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
