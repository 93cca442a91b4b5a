// The parts of a report that evaluation.json gives.
#include "viewing/report/evaluation_tables.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "base/file.h"
#include "tests/control/viewing/report/evaluation_text.h"
#include "tests/control/viewing/report/report_html.h"
#include "tests/control/viewing/runs/run_folder_files.h"
#include "viewing/report/run_report.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::string page_with(const std::string& evaluation) {
  const RunFiles run;
  run.write("metrics.jsonl", start_line(100, 0) + train_line(105, 0, "2.5") +
                                 test_line(119, 2, "0.75") + summary_line(120, 2));
  run.write("evaluation.json", evaluation);
  return report_page(read_run_report(run.path(), ""));
}

TEST(EvaluationTables, Page_HasClassesConfusionsCurvesAndPictures) {
  const std::string page = page_with(evaluation_text(3, "/9j/4AAQ"));
  expect_harmless(page);
  EXPECT_THAT(elements_of(page, "h2"),
              IsSupersetOf({"Classes", "Confusions", "Scores", "Largest losses"}));
  EXPECT_THAT(elements_of(page, "td"),
              IsSupersetOf({"&lt;class&gt; 1", "0.250", "0.500", "0.333", "0.750", "-", "7"}));
  EXPECT_THAT(elements_of(page, "text"),
              IsSupersetOf({"ROC", "Precision and recall", "Calibration"}));
  EXPECT_THAT(elements_of(page, "small"), Contains("14 %"));  // 1 of 7 samples
  EXPECT_THAT(page, AllOf(HasSubstr("data:image/jpeg;base64,/9j/4AAQ"),
                          HasSubstr("photos/&lt;b&gt;.jpg"), Not(HasSubstr("<b>.jpg"))));
}

// A segmentation: the counts are pixels.
TEST(EvaluationTables, Pixels_HaveIntersectionsOverUnions) {
  const std::string page = page_with(
      R"({"step":9,"epoch":1,"exclusive":true,"samples":5000,"support":[3000,1990,10,0],)"
      R"("predicted":[2500,2500,0,0],"precision":[0.875,0.75,0,0],"recall":[0.625,0.5,0,0],)"
      R"("f1":[0.725,0.6,0,0],"unit":"pixels","iou":[0.5625,0.4375,0,null],"few":1000,)"
      R"("confusion":{"classes":[0,1,2,3],"counts":[2400,600,0,0,90,1900,0,0,10,0,0,0,0,0,0,0]},)"
      R"("names":["road","<car>","bird","boat"],"worst":[{"wrong":0.256,"expected":[1,0],)"
      R"("predicted":[0],"name":"a.jpg","jpeg":"/9j/4AAQ"}]})");
  expect_harmless(page);
  EXPECT_THAT(elements_of(page, "h2"),
              AllOf(IsSupersetOf({"Classes", "Confusions", "Most wrong pixels"}),
                    Not(Contains("Scores")), Not(Contains("Largest losses"))));
  EXPECT_THAT(elements_of(page, "th"),
              AllOf(IsSupersetOf({"IoU", "accuracy", "pixels"}), Not(Contains("AUC"))));
  EXPECT_THAT(elements_of(page, "td"), IsSupersetOf({"&lt;car&gt;", "0.562", "0.438", "1990"}));
  EXPECT_THAT(elements_of(page, "small"), IsSupersetOf({"80 %", "20 %", "95 %"}));
  EXPECT_THAT(elements_of(page, "span"), Contains("wrong: 25.6 %"));
  EXPECT_THAT(elements_of(page, "p"),
              Contains(AllOf(HasSubstr("bird (10), boat (none)"), Not(HasSubstr("road")))));
}

// Tables and pictures of an evaluation are bounded, whatever the number of classes.
TEST(EvaluationTables, ManyClasses_TakeLessThanOneMebibyte) {
  const std::string page = page_with(evaluation_text(3000, std::string(32 << 10, 'A')));
  expect_harmless(page);
  EXPECT_LT(page.size(), 1U << 20);
  EXPECT_THAT(page, AllOf(HasSubstr("1000 of 3000 classes"), HasSubstr("40 of 3000 classes")));
}

TEST(EvaluationTables, DamagedFile_IsNamed) {
  const std::string page = page_with("{\"support\":[");
  EXPECT_THAT(elements_of(page, "h2"), Not(Contains("Classes")));
  EXPECT_THAT(page, HasSubstr("evaluation.json could not be read"));
  // Another program's: counts that do not fit the classes, and no picture.
  const std::string odd = page_with(
      R"({"step":1,"samples":2,"support":[1,1],"confusion":{"classes":[0,9],"counts":[1,1,1,1]},)"
      R"("curves":[{"class":7,"points":[1]}],"worst":[{"jpeg":"\"><script>","expected":[-1]}]})");
  expect_harmless(odd);
  EXPECT_THAT(elements_of(odd, "h2"), AllOf(Contains("Classes"), Not(Contains("Confusions"))));
  EXPECT_THAT(odd, Not(HasSubstr("data:image")));
}

// A browser runs only the script whose hash the page names.
TEST(EvaluationTables, Script_HasTheHashOfThePolicy) {
  if (std::system("python3 -c pass >/dev/null 2>&1") != 0) GTEST_SKIP() << "python3 is missing";
  const RunFiles files;
  files.write("script", sorting_script());
  const std::string command =
      "python3 -c 'import base64, hashlib, sys; print(\"sha256-\" + base64.b64encode(hashlib."
      "sha256(open(sys.argv[1], \"rb\").read()).digest()).decode(), end=\"\")' " +
      files.path() + "/script >" + files.path() + "/hash";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read_file(files.path() + "/hash"), sorting_script_hash());
}

}  // namespace
}  // namespace fleet
