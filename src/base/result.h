// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace tacet {

// Why something could not go on at all. `hint` says what the user can do about it.
struct Error {
  std::string message;
  std::string hint;
};

// A value, or the reason there is none. Bad evidence is not an Error but a Diagnostic: it is counted and shown.
template <typename T>
class Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  const Error& error() const { return std::get<1>(state_); }
  T* operator->() { return &value(); }
  T& operator*() { return value(); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace tacet
