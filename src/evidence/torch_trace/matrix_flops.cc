// SPDX-License-Identifier: Apache-2.0
#include "matrix_flops.h"

namespace tacet {
namespace {

using Dims = std::vector<std::vector<int64_t>>;

double Product(const std::vector<int64_t>& sizes) {
  double product = 1;
  for (const int64_t size : sizes) product *= static_cast<double>(size);
  return product;
}

double OfProduct(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a.size() < 2 || b.size() < 2) return 0;
  return 2 * Product(a) * static_cast<double>(b.back());
}

// query [batch, heads, q, d], key [batch, heads, k, d]: q k^T and its product with the values.
double OfAttention(const std::vector<int64_t>& query, const std::vector<int64_t>& key) {
  if (query.size() != 4 || key.size() != 4) return 0;
  return 4 * Product(query) * static_cast<double>(key[2]);
}

// input [n, c, ...], weight [out, in / groups, kernel...]. The output has the input's places over stride squared, which
// the shapes do not tell; only convolutions of stride one are counted right, the others too high.
double OfConvolution(const std::vector<int64_t>& input, const std::vector<int64_t>& weight) {
  if (input.size() < 3 || weight.size() != input.size() || input[1] <= 0) return 0;
  return 2 * Product(input) / static_cast<double>(input[1]) * Product(weight);
}

}  // namespace

double MatrixFlops(std::string_view operation, const Dims& dims) {
  if (operation.starts_with("aten::")) operation.remove_prefix(6);
  const auto has = [&](size_t count) { return dims.size() >= count; };
  if (operation == "mm" || operation == "bmm" || operation == "_scaled_mm")
    return has(2) ? OfProduct(dims[0], dims[1]) : 0;
  if (operation == "addmm" || operation == "baddbmm") return has(3) ? OfProduct(dims[1], dims[2]) : 0;
  if (operation == "convolution") return has(2) ? OfConvolution(dims[0], dims[1]) : 0;
  if (operation == "convolution_backward") return has(3) ? 2 * OfConvolution(dims[1], dims[2]) : 0;
  if (operation.find("attention_backward") != std::string_view::npos)
    return has(3) ? 2.5 * OfAttention(dims[1], dims[2]) : 0;
  if (operation.find("attention") != std::string_view::npos) return has(2) ? OfAttention(dims[0], dims[1]) : 0;
  return 0;
}

}  // namespace tacet
