// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/runaway_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {
namespace {

// What is read of a loss that a program prints.
Incident Printing(std::string_view name, const std::vector<double>& losses) {
  Incident incident;
  LogOutline& outline = incident.outlines.emplace_back();
  FigureSeries& series = outline.series.emplace_back();
  series.kind = FigureSeries::Kind::loss;
  series.name = std::string(name);
  for (const double loss : losses) {
    TrainingValue& value = series.value;
    if (value.lines == 0) value.first = value.least = value.most = loss;
    value.least = std::min(value.least, loss);
    value.most = std::max(value.most, loss);
    value.far = loss >= 10 * value.least ? value.far + 1 : 0;
    value.last = loss;
    ++value.lines;
  }
  return incident;
}

TEST(RunawayLoss, GrowsByOrdersOfMagnitudeAndStaysThere) {
  const Incident incident = Printing("mse", {0.6, 0.03, 0.08, 0.26, 0.9, 2.3, 7.1, 18, 65, 184, 525});
  const auto found = FindRunawayLoss(incident);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->series->name, "mse");
}

TEST(RunawayLoss, APeakOrASmallRiseIsNone) {
  EXPECT_FALSE(FindRunawayLoss(Printing("loss", {2.3, 1.1, 0.4, 90, 45, 3, 0.9, 0.5, 0.4, 0.4, 0.3})))
      << "it came down";
  EXPECT_FALSE(FindRunawayLoss(Printing("loss", {2.3, 0.4, 0.2, 0.3, 0.5, 0.8, 1.1, 1.4, 1.6, 1.7, 1.8})))
      << "eight times";
  EXPECT_FALSE(FindRunawayLoss(Printing("loss", {900, 700, 300, 80, 2, 30, 250, 400, 700, 800, 850})))
      << "it ends where it began";
  EXPECT_FALSE(FindRunawayLoss(Printing("loss", {0.5, 1e-9, 2e-8, 3e-7, 4e-7, 6e-7, 7e-7, 8e-7, 9e-7})))
      << "nearly nothing";
}

}  // namespace
}  // namespace tacet
