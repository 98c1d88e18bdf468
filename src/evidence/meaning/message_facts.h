// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tacet {

// The index of a GID that NCCL used and that is a link-local address (fe80::), which no router forwards; -1: none.
int64_t ReadLinkLocalGidIndex(std::string_view warning);
// ... that holds no address at all: "local GID index 7, local GID ::, remote GID ...".
int64_t ReadEmptyGidIndex(std::string_view warning);

// How many like lines Ray left out behind this one; 0: none.
int64_t ReadFoldedLines(std::string_view line);

}  // namespace tacet
