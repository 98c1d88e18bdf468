// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "report/profile/profile_report.h"

namespace tacet {

// Over a profile: "communication-bound"; where the records do not show what bounds the step, whether they show a
// straggler.
std::string_view HeadingWord(const ProfileReport& profile);
// Why no rank is called a straggler and none is cleared: "steps could not be separated"; empty where ranks are judged.
std::string WhyNotJudged(const ProfileReport& profile);

std::string DescribeTime(double ns);  // "12.3 ms"
std::string DescribeSize(
    int64_t bytes);  // "716 MiB": in powers of two throughout, as size classes and bucket_cap_mb count
std::string DescribeShare(double share);       // "12.3 %"
std::string DescribeSmallShare(double share);  // "< 0.1 %" for what would be rounded to nothing
std::string DescribeNumber(double number);     // three digits: "48.3", "0.00512"
std::string DescribeFactor(double factor);     // two decimals: "1.00"
std::string DescribeRate(double gbs);          // three digits, not below a thousandth
std::string DescribeFlops(double flops);       // "2.14 TFLOP", "60.5 MFLOP"
std::string_view Name(PipelineSchedule schedule);
std::string_view Name(StragglerPattern pattern);
std::string_view Name(StragglerOrigin origin);
std::string_view Name(Trust trust);

}  // namespace tacet
