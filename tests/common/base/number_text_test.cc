#include "base/number_text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fleet {
namespace {

TEST(NumberText, FourDigits_OfEachMagnitude) {
  const struct {
    double value;
    const char* text;
  } cases[] = {{0, "0"},
               {1.2e-7, "1.2e-07"},
               {0.00012345, "0.0001234"},
               {0.0123, "0.0123"},
               {3.14159, "3.142"},
               {-3.14159, "-3.142"},
               {2, "2"},
               {999.96, "1000"},
               {9999.6, "10000"},
               {11720, "11720"},
               {11720.4, "11720"},
               {-123456.7, "-123457"},
               {98765432, "98765432"},
               {1.5e9, "1.5e+09"},
               {INFINITY, "inf"},
               {NAN, "nan"}};
  for (const auto& [value, text] : cases) EXPECT_EQ(number_text(value, 4), text);
}

TEST(NumberText, FewDigits_NeverLoseThoseBeforeThePoint) {
  EXPECT_EQ(number_text(1234.5, 3), "1234");
  EXPECT_EQ(number_text(12.345, 3), "12.3");
  EXPECT_EQ(number_text(12.345, 1), "12");
}

TEST(NumberText, SixDigits_UnlessOthersAreGiven) {
  EXPECT_EQ(number_text(0.123456789), "0.123457");
  EXPECT_EQ(number_text(1234567), "1234567");
}

}  // namespace
}  // namespace fleet
