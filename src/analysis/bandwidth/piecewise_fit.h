// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tacet {

struct FitObservation {
  double bytes = 0, time_us = 0;
};

// Between two changes of protocol a message of m bytes takes alpha + m / bandwidth.
struct FitSegment {
  double first_bytes = 0, last_bytes = 0;   // measured sizes
  double alpha_us = 0, alpha_error_us = 0;  // half of the 95 % interval
  double beta_us_per_byte = 0, beta_error_us_per_byte = 0;
  double r_squared = 0;                    // of logarithms: each size counts alike
  double mean_error = 0, worst_error = 0;  // share of the time
  double worst_bytes = 0;
  size_t observations = 0, sizes = 0;
  double BandwidthGbs() const { return beta_us_per_byte > 0 ? 1e-3 / beta_us_per_byte : 0; }
  // Sizes tell a parameter where its interval keeps clear of zero.
  bool TellsAlpha() const { return alpha_us > 0 && alpha_error_us < alpha_us; }
  bool TellsBandwidth() const { return beta_us_per_byte > 0 && beta_error_us_per_byte < beta_us_per_byte; }
};

struct PiecewiseFit {
  std::vector<FitSegment> segments;  // empty where there are fewer than three sizes
  double r_squared = 0, mean_error = 0, worst_error = 0, worst_bytes = 0;
  double noise = 0;                   // standard deviation of measured over fitted, without outliers
  double TimeAt(double bytes) const;  // beyond the sweep the nearest segment goes on
};

inline constexpr size_t kMostSegments = 5;

// Least squares of relative errors, since a sweep covers nine decades; the number of segments by Schwarz's criterion,
// their ends by dynamic programming. Outliers weigh less (Huber).
PiecewiseFit FitPiecewise(std::span<const FitObservation> observations);

}  // namespace tacet
