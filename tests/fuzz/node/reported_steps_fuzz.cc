// Reports of steps in the output of a rank.
#include <algorithm>
#include <string>

#include "node/reported_steps.h"
#include "node/step_lines.h"
#include "tests/fuzz/fuzz.h"

// The size of the pieces in which the output arrives, and the output.
FLEET_FUZZ(reported_steps) {
  const size_t piece = size_t{1} + fleet::fuzz::take_byte(&bytes);
  fleet::StepLineFinder finder;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    finder.scan(bytes.substr(at, piece), static_cast<int64_t>(at));
  }
  fleet::ReportedSteps steps;
  for (const fleet::StepText& found : finder.take()) {
    fleet::fuzz::require(found.text.size() <= fleet::StepLineFinder::kLongest,
                         "a report has a limit");
    std::string why;
    const auto report = fleet::parse_reported_step(found.text, &why);
    fleet::fuzz::require(report.has_value() == why.empty(), "a refusal has a reason");
    if (report) steps.add(*report, found.at_ns);
  }
  if (!steps.progress()) return;
  const fleet::StepTotals& totals = steps.progress()->totals;
  fleet::fuzz::require(totals.time <= static_cast<int64_t>(bytes.size()) &&
                           totals.input <= totals.time && totals.exposed <= totals.time &&
                           totals.exchange <= std::max<int64_t>(totals.exposed, 0),
                       "the parts of a step are no longer than the time that passed");
}
