#include "viewing/runs/curve_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(EscapeMarkup, MarkupAndControls_AreHarmless) {
  EXPECT_EQ(escape_markup("<script>alert('1')</script>&\""),
            "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;");
  EXPECT_EQ(escape_markup("a\x1b[31m\tb\n"), "a\uFFFD[31m\tb\n");
  EXPECT_EQ(escape_markup("\xff\xc3"), "\uFFFD\uFFFD");
  EXPECT_EQ(escape_markup("gr\u00fc\u00df \u4e2d"), "gr\u00fc\u00df \u4e2d");
  EXPECT_EQ(escape_markup("x\u202ey\u0085"), "x\uFFFDy\uFFFD");  // reverses the text; a control
  EXPECT_EQ(escape_markup(std::string("a\0b", 3)), "a\uFFFDb");
}

TEST(ThinPoints, FewPoints_StayAsTheyAre) {
  EXPECT_EQ(thin_points({{0, 1}, {1, 2}}, 100).size(), 2u);
  EXPECT_TRUE(thin_points({}, 100).empty());
}

TEST(ThinPoints, ManyPoints_KeepExtremesAndEnds) {
  Points points;
  for (int i = 0; i < 100'000; ++i) points.push_back({double(i), std::sin(i * 0.01)});
  points[54'321].value = 50;
  points[54'322].value = -50;
  points[77'777].value = NAN;
  const Points thin = thin_points(points, 200);
  EXPECT_LE(thin.size(), 200u * 5);
  EXPECT_GE(thin.size(), 200u);
  EXPECT_EQ(thin.front().step, 0);
  EXPECT_EQ(thin.back().step, 99'999);
  const auto has = [&](double step) {
    return std::ranges::any_of(thin, [&](const CurvePoint& p) { return p.step == step; });
  };
  EXPECT_TRUE(has(54'321));
  EXPECT_TRUE(has(54'322));
  EXPECT_TRUE(has(77'777));
  EXPECT_TRUE(std::ranges::is_sorted(thin, {}, &CurvePoint::step));
}

CurveChart chart_of(Points points) {
  return {.title = "Loss",
          .unit = "by step",
          .curves = {{"a", std::move(points), Curve::Style::kNoisy}},
          .resumes = {},
          .may_be_logarithmic = true};
}

TEST(CurveChartsSvg, OddValues_GiveNumbersOnly) {
  const std::vector<Points> odd = {{{0, NAN}, {1, 2}, {2, NAN}, {3, INFINITY}},
                                   {{0, 5}},
                                   {{0, 5}, {1, 5}},
                                   {{0, -1e300}, {1, 1e300}},
                                   {{0, 1e-300}, {1, 1e300}},
                                   {{1e15, 1}, {1e15 + 1, 2}},
                                   {{3, 0}, {3, 0}}};
  for (const Points& points : odd) {
    const std::string svg = curve_charts_svg({chart_of(points)});
    EXPECT_THAT(svg, HasSubstr("</svg>"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(::testing::ContainsRegex("[^a-z]inf[^ia-z]")));
  }
}

TEST(CurveChartsSvg, ValuesThatAreNotFinite_AreMarked) {
  EXPECT_THAT(curve_charts_svg({chart_of({{0, 1}, {1, NAN}, {2, 1}})}),
              HasSubstr("infinite or NaN"));
  EXPECT_THAT(curve_charts_svg({chart_of({{0, 1}, {1, 2}, {2, 1}})}),
              Not(HasSubstr("infinite or NaN")));
}

TEST(CurveChartsSvg, AMillionPoints_AreAFewKilobytes) {
  Points points;
  for (int i = 0; i < 1'000'000; ++i) points.push_back({double(i), i % 997 / 1000.0});
  EXPECT_LT(curve_charts_svg({chart_of(points)}).size(), 100'000u);
}

TEST(CurveChartsSvg, Names_AreEscaped) {
  CurveChart chart = chart_of({{0, 1}, {1, 2}});
  chart.title = "</svg><script>";
  EXPECT_THAT(curve_charts_svg({chart}), Not(HasSubstr("<script>")));
}

TEST(CurveChartsSvg, NoCharts_SayThat) {
  EXPECT_THAT(curve_charts_svg({}), HasSubstr("no values were recorded"));
}

}  // namespace
}  // namespace fleet
