// The message that a wrong use ends with.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace fleet {

// Runs body: the message of its error, which must be kUsage; "" where it has none.
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

}  // namespace fleet
