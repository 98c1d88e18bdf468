// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// The value of a variable as it may be written down: replaced as a whole where the name says that it is a secret,
// without the secrets in it otherwise.
std::string HideSecret(std::string_view name, std::string_view value);
// A command line: "--api-key VALUE", "--token=VALUE" and whatever looks like a secret.
std::vector<std::string> HideSecretsInCommand(const std::vector<std::string>& command);

}  // namespace tacet
