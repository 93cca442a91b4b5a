#include "models/class_counts.h"

#include <gmock/gmock.h>

#include <cmath>

namespace fleet {
namespace {

using ::testing::ElementsAre;

TEST(ClassCounts, CountsByOwnClassAndLargestLogit) {
  ClassCounts counts(3);
  const std::vector<float> logits = {0, 2, 1, 3, 0, 0, 1, 1, 0, 9, 0, 0, 0, 0, 9};
  const std::vector<int64_t> labels = {1, 0, 1, 2, -100};
  const std::vector<float> weights = {1, 1, 1, 0, 1};
  counts.add(logits, labels, weights);
  EXPECT_EQ(counts.count(1, 1), 1);
  EXPECT_EQ(counts.count(0, 0), 1);
  EXPECT_EQ(counts.count(1, 0), 1);                     // the first of equal logits
  EXPECT_THAT(counts.samples(), ElementsAre(1, 2, 0));  // no padding, no ignored label
  EXPECT_EQ(counts.accuracies()[1], 0.5);
  EXPECT_TRUE(std::isnan(counts.accuracies()[2]));
  EXPECT_EQ(counts.csv({}), "class,0,1,2\n0,1,0,0\n1,1,1,0\n2,0,0,0\n");
  EXPECT_EQ(counts.csv({"cat", "dog, big", "a \"b\""}),
            "class,cat,\"dog, big\",\"a \"\"b\"\"\"\n"
            "cat,1,0,0\n\"dog, big\",1,1,0\n\"a \"\"b\"\"\",0,0,0\n");
}

TEST(ClassCounts, LogitThatIsNotANumber_IsNoHit) {
  ClassCounts counts(3);
  counts.add(std::vector<float>{NAN, NAN, NAN, NAN, 0, 9, NAN, 0, 0}, std::vector<int64_t>{0, 2, 0},
             std::vector<float>{1, 1, 1});
  EXPECT_EQ(counts.count(0, 0), 0);
  EXPECT_EQ(counts.count(2, 2), 1);
  EXPECT_EQ(counts.samples()[0], 2);
}

}  // namespace
}  // namespace fleet
