// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace tacet {

// What a part of a sentence states. All take small letters.

using WordList = std::initializer_list<std::string_view>;

// In small letters, as far as sentences are read.
std::string LowSentence(std::string_view text);
// One of the words by itself, not inside of another.
bool HasAnyWord(std::string_view text, WordList words);
// Supposed, asked, over or denied.
bool IsDoubted(std::string_view part);
// "freezes every 20 iterations": no hang, since it goes on each time.
bool GoesOnEachTime(std::string_view part);

// Whether a part of the line states it, and the sentence it stands in is no question.
bool AnyPartStates(std::string_view line, bool (*states)(std::string_view part));
// "unable to figure out why the process hangs": that it hangs is known, and only the reason is not. The part behind
// "why"; otherwise all of it.
std::string_view BehindKnownWhy(std::string_view part);

// "the all-reduce gives wrong results", "the result shows Out of bounds values : 12 FAILED"
bool StatesWrongResults(std::string_view sentence);
bool StatesThatOneIsIdle(std::string_view sentence);
// "the 31 others wait for it in all_reduce()", "all other ranks are stuck in the barrier"
bool StatesThatOthersWait(std::string_view sentence);
bool StatesThatAllWaitButOne(std::string_view sentence);
bool StatesAHang(std::string_view part);
bool StatesAStop(std::string_view part);
bool StatesSlowness(std::string_view part);
// What a sentence that tells of slowness says to differ between the fast and the slow case: "the number of nodes";
// empty where it tells no such thing.
std::string SlowCondition(std::string_view sentence);
bool StatesNotFinite(std::string_view part);
// A measure, a number, and what it should be: "busbw is at 12, I would expect 180".
bool MissesAnExpectation(std::string_view sentence);

}  // namespace tacet
