// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/process/stack_reading.h"
#include "model/events/event_witness.h"
#include "model/incident.h"

namespace tacet {

// Where a process of a job that stands still is, in three parts, each as far as the evidence shows it. Of claims that
// are as strong, the later value of Liveness holds: who ran may have stopped since, and who is gone does not come back.
enum class Liveness : uint8_t { unknown, unseen, running, stopped, gone };
enum class HostPlace : uint8_t { unknown, own_code, inside_nccl, in_kernel, waiting_for_gpu };
enum class GpuPlace : uint8_t { unknown, before, inside };  // the operation that its peers wait in

enum class Strength : uint8_t { proof, strong, weak };

// What one witness says about one part of the state of a process, and because of what. One that says "unknown" only
// tells why it cannot answer.
struct Claim {
  std::variant<Liveness, HostPlace, GpuPlace> says;
  Strength strength = Strength::weak;
  Witness witness = Witness::self;
  std::string_view because;        // "its stack is outside communication while its peers wait"
  bool told_why = false;           // gone, and its own words or the kernel's say of what
  bool holds = true;               // false: it speaks against that value
  const Event* event = nullptr;    // the line that says it, where one does
  const Event* closing = nullptr;  // a peer saw its connection close
  const StackReading* stack = nullptr;
  const InFlight* inside = nullptr;  // what its host is inside NCCL with

  bool knows() const {
    return std::visit([](auto value) { return value != decltype(value)::unknown; }, says);
  }
};

template <class Value>
Claim& Say(std::vector<Claim>& claims, Value value, Strength strength, std::string_view because,
           const Event* event = nullptr) {
  Claim& claim = claims.emplace_back();
  claim.says = value;
  claim.strength = strength;
  claim.because = because;
  claim.event = event;
  if (event) claim.witness = WitnessOf(*event);
  return claim;
}

inline Claim& SayByStack(std::vector<Claim>& claims, const StackReading& stack, HostPlace place, Strength strength,
                         std::string_view because) {
  Claim& claim = Say(claims, place, strength, because);
  claim.witness = Witness::tool;
  claim.stack = &stack;
  return claim;
}

// One part of a state, and the claim that decided it.
template <class Value>
struct StatePart {
  Value value = Value::unknown;
  size_t by = SIZE_MAX;   // index of the claim; SIZE_MAX: none
  bool disputed = false;  // as strong a claim speaks against every value that somebody claims
};

struct ProcessState {
  StatePart<Liveness> process;
  StatePart<HostPlace> host;
  StatePart<GpuPlace> gpu;
};

// Every part takes the value with the strongest claim, unless as strong a one speaks against it; of claims for
// different places that are as strong, the first.
ProcessState JoinClaims(const std::vector<Claim>& claims);

}  // namespace tacet
