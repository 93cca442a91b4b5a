#include "node/step_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kReport = R"({"fleetrun": {"step": 1}})";

std::vector<std::string> texts(const std::vector<StepText>& found) {
  std::vector<std::string> all;
  for (const StepText& one : found) all.push_back(one.text);
  return all;
}

std::vector<StepText> found_in(std::string_view output, size_t size = std::string::npos) {
  StepLineFinder finder;
  for (size_t at = 0; at < output.size(); at += std::min(size, output.size())) {
    finder.scan(output.substr(at, size), 7);
  }
  return finder.take();
}

TEST(StepLineFinder, Reports_AreFoundHoweverTheOutputIsCut) {
  const std::string quoted = R"({"fleetrun":{"step":2,"a\"}{":3,"b\\":{"c":1}}})";
  const std::string output = "epoch 1\n" + kReport + "\n{\"other\": 1}\n{{\"fleet\n{" + kReport +
                             "\r\n 45%|###  | 9/20" + quoted + "\n" + kReport + kReport + "\n\nend";
  for (size_t size = 1; size <= output.size(); ++size) {
    EXPECT_THAT(texts(found_in(output, size)),
                ElementsAre(kReport, kReport, quoted, kReport, kReport))
        << size;
  }
}

TEST(StepLineFinder, ReportInAnotherLine_MayBeAQuotation) {
  std::vector<bool> are_reports;
  const std::string output = kReport + "\n  print('" + kReport + "')\n 9%|#\r" + kReport + "\n";
  for (const StepText& one : found_in(output, 5)) are_reports.push_back(one.is_report);
  EXPECT_THAT(are_reports, ElementsAre(true, false, true));
}

TEST(StepLineFinder, Times_AreThoseOfTheirEnds) {
  StepLineFinder finder;
  finder.scan(kReport.substr(0, 15), 1);
  EXPECT_THAT(finder.take(), IsEmpty());
  finder.scan(kReport.substr(15), 2);
  finder.scan("\n" + kReport, 3);
  const std::vector<StepText> found = finder.take();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].at_ns, 2);
  EXPECT_EQ(found[1].at_ns, 3);
  EXPECT_THAT(finder.take(), IsEmpty());
}

TEST(StepLineFinder, EndOfTheLine_EndsADamagedReport) {
  EXPECT_THAT(texts(found_in("{\"fleetrun\": {\"step\": 1\n" + kReport + "\n")),
              ElementsAre("{\"fleetrun\": {\"step\": 1", kReport));
}

TEST(StepLineFinder, LongLines_TakeBoundedMemory) {
  const std::string long_line(1 << 20, 'x');
  EXPECT_THAT(texts(found_in(long_line + kReport + long_line, 4096)), ElementsAre(kReport));
  const std::string endless = R"({"fleetrun": {"note": ")" + long_line;
  const std::vector<StepText> found = found_in(endless + "\n" + kReport + "\n", 4096);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].text.size(), StepLineFinder::kLongest);
  EXPECT_EQ(found[1].text, kReport);
}

TEST(StepLineFinder, UntakenReports_AreTheNewest) {
  StepLineFinder finder;
  for (int step = 0; step < 100'000; ++step) {
    finder.scan(R"({"fleetrun": {"step": )" + std::to_string(step) + "}}\n", step);
  }
  size_t bytes = 0;
  const std::vector<StepText> found = finder.take();
  for (const StepText& one : found) bytes += one.text.size();
  EXPECT_LE(bytes, StepLineFinder::kMostKept);
  EXPECT_GT(bytes, StepLineFinder::kMostKept / 2);
  EXPECT_EQ(found.back().at_ns, 99'999);
}

}  // namespace
}  // namespace fleet
