#include "text/unigram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

namespace fleet::text {
namespace {

struct UnigramLoss : ::testing::Test {
  TokenFile file(const std::string& name, const std::vector<uint32_t>& ids) {
    const std::string path = folder + name;
    TokenWriter writer(path, TokenFormat::kNanoGpt, TokenWidth::kUint16);
    writer.add(ids);
    writer.finish();
    return TokenFile(path);
  }
  ~UnigramLoss() override { std::filesystem::remove_all(folder); }
  const std::string folder = [] {
    char path[] = "/tmp/fleet_unigram.XXXXXX";
    return std::string(::mkdtemp(path)) + "/";
  }();
};

TEST_F(UnigramLoss, Shares_OfTheTrainingTokensCount) {
  // Counts 3, 1, 0 of ids 0, 1, 2; with one more of each: 4/7, 2/7, 1/7.
  const TokenFile training = file("train.bin", {0, 0, 1, 0}), other = file("val.bin", {0, 1, 1, 2});
  const double expected = -(std::log(4.0 / 7) + 2 * std::log(2.0 / 7) + std::log(1.0 / 7)) / 4;
  EXPECT_NEAR(unigram_loss(training, other), expected, 1e-12);
}

TEST_F(UnigramLoss, NothingToEvaluate_IsZero) {
  EXPECT_EQ(unigram_loss(file("train.bin", {1, 2}), file("val.bin", {})), 0);
}

}  // namespace
}  // namespace fleet::text
