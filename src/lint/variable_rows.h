// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tacet {

// One variable per line: name|kind|default|since|until|agreement|new name|effect.
std::string_view NcclVariableRows();
std::string_view NcclNetworkVariableRows();
std::string_view TorchVariableRows();
std::string_view PluginVariableRows();

}  // namespace tacet
