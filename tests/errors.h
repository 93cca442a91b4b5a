// Matches errors by their code and place. One test per message may compare the wording.
//
//   EXPECT_THAT(thrown_by([&] { open(path); }), IsError(ErrorCode::kUsage, path));
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "base/error.h"

namespace fleet {

// For gtest's messages.
inline void PrintTo(const Error& error, std::ostream* out) {
  *out << name_of(error.code()) << " on '" << error.where() << "': " << error.what();
}

// The error that body throws. Fails the test if it throws none.
template <typename Body>
Error thrown_by(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {ErrorCode::kInternal, "no error", "no error"};
}

// The message of the kUsage error of body; "" if it throws none. For the tests of a message.
template <typename Body>
std::string usage_failure(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage) << error.what();
    return error.what();
  }
  return "";
}

using ErrorMatcher = ::testing::Matcher<const Error&>;
using TextMatcher = ::testing::Matcher<const std::string&>;

// An error of this code. `where`: the file, line, key, option, host or rank that it names.
inline ErrorMatcher IsError(ErrorCode code, const TextMatcher& where = ::testing::_) {
  return ::testing::AllOf(::testing::Property("code", &Error::code, code),
                          ::testing::Property("where", &Error::where, where));
}
// The user must change something: exit code 2.
inline ErrorMatcher IsUsageError(const TextMatcher& where = ::testing::_) {
  return IsError(ErrorCode::kUsage, where);
}

// Where the user's next step is part of the test.
inline ErrorMatcher Advises(const TextMatcher& next) {
  return ::testing::Property("next", &Error::next, next);
}

}  // namespace fleet
