#include "cost/rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace fleet {
namespace {

MachineRates simple() {
  MachineRates rates{.device = "a machine", .origin = "a test"};
  rates.peak = {{"float32", 1e9}, {"bfloat16", 2e9}};
  rates.bytes_per_second = 1e8;
  rates.op_seconds = 1e-6;
  return rates;
}

OpCost cost(const std::string& key, double operations, double bytes,
            DType dtype = DType::kFloat32) {
  return {.key = key, .dtype = dtype, .operations = operations, .bytes = bytes};
}

TEST(MachineRates, WithoutSamples_TheWorseLimitCounts) {
  const MachineRates rates = simple();
  EXPECT_DOUBLE_EQ(rates.seconds(cost("new_op", 0, 1e8)), 1 + 1e-6);
  EXPECT_DOUBLE_EQ(rates.seconds(cost("new_op", 3e9, 1e8)), 3 + 1e-6);
  EXPECT_DOUBLE_EQ(rates.seconds(cost("new_op", 4e9, 0, DType::kBFloat16)), 2 + 1e-6);
}

TEST(MachineRates, SampleOfTheSameKey_SetsTheRatio) {
  MachineRates rates = simple();
  rates.samples = {{"conv", "", 1e9, 0, 2.0}, {"other", "", 1e9, 0, 50.0}};
  EXPECT_NEAR(rates.seconds(cost("conv", 1e9, 0)), 2, 1e-5);
  EXPECT_NEAR(rates.seconds(cost("conv", 5e9, 0)), 10, 1e-4);  // the ratio, not the time
}

TEST(MachineRates, NearSample_CountsMoreThanAFarOne) {
  MachineRates rates = simple();
  rates.samples = {{"conv", "", 1e9, 0, 1.0}, {"conv", "", 1e12, 0, 4000.0}};  // ratios 1 and 4
  EXPECT_NEAR(rates.seconds(cost("conv", 1.1e9, 0)) / 1.1, 1, 0.05);
  EXPECT_NEAR(rates.seconds(cost("conv", 0.9e12, 0)) / 900, 4, 0.2);
}

// A batch normalisation of a plain layout takes many times what one of a blocked layout takes.
TEST(MachineRates, SamplesOfTheSameLayout_CountAlone) {
  MachineRates rates = simple();
  rates.samples = {{"norm", "blocked", 0, 1e8, 1.0}, {"norm", "plain", 0, 1e8, 20.0}};
  OpCost norm = cost("norm", 0, 1e8);
  norm.layout = "plain";
  EXPECT_NEAR(rates.seconds(norm), 20, 1e-3);
  norm.layout = "blocked";
  EXPECT_NEAR(rates.seconds(norm), 1, 1e-3);
  norm.layout = "strided";  // none is known: between both
  EXPECT_GT(rates.seconds(norm), 1.5);
  EXPECT_LT(rates.seconds(norm), 15);
}

TEST(LinkRates, BetweenAndBeyondSizes) {
  const LinkRates link{
      .transport = "shm", .ranks = 2, .all_reduce = {{1000, 0.001}, {2000, 0.002}, {4000, 0.010}}};
  EXPECT_DOUBLE_EQ(link.seconds(10), 0.001);
  EXPECT_DOUBLE_EQ(link.seconds(3000), 0.006);
  EXPECT_DOUBLE_EQ(link.seconds(8000), 0.020);
  EXPECT_DOUBLE_EQ(link.busy(8000), 0);
}

TEST(LinkRates, TimeOfACore_IsInterpolatedToo) {
  const LinkRates link{
      .transport = "gloo", .ranks = 2, .all_reduce = {{1000, 0.1, 0.01}, {3000, 0.3, 0.03}}};
  EXPECT_DOUBLE_EQ(link.busy(2000), 0.02);
  EXPECT_DOUBLE_EQ(link.busy(6000), 0.06);
}

TEST(MachineRates, FindLink_AsksForTransportRanksAndNodes) {
  MachineRates rates = simple();
  rates.links = {{.transport = "gloo", .ranks = 2, .nodes = 2, .all_reduce = {{1, 2}}},
                 {.transport = "gloo", .ranks = 4, .nodes = 2, .all_reduce = {{1, 3}}}};
  EXPECT_EQ(rates.find_link("gloo", 4, 2)->all_reduce[0].seconds, 3);
  EXPECT_EQ(rates.find_link("gloo", 4, 1), nullptr);
  EXPECT_EQ(rates.find_link("shm", 2, 2), nullptr);
}

TEST(MachineRates, WrittenAndRead_IsTheSame) {
  MachineRates rates = simple();
  rates.samples = {{"conv2d 3x3 float32", "blocked", 1e9, 2e6, 0.5}};
  rates.links.push_back({.transport = "shm", .ranks = 2, .all_reduce = {{1024, 1e-5, 1e-6}}});
  rates.kernel_bytes = 1234;
  const auto read = parse_rates(rates_json(rates));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->device, rates.device);
  EXPECT_EQ(read->peak, rates.peak);
  EXPECT_EQ(read->kernel_bytes, 1234);
  ASSERT_EQ(read->samples.size(), 1U);
  EXPECT_EQ(read->samples[0].key, "conv2d 3x3 float32");
  EXPECT_EQ(read->samples[0].layout, "blocked");
  EXPECT_EQ(read->samples[0].seconds, 0.5);
  EXPECT_EQ(read->find_link("shm", 2, 1)->all_reduce[0].busy, 1e-6);
  EXPECT_EQ(read->find_link("shm", 2, 1)->all_reduce[0].bytes, 1024);
}

TEST(MachineRates, DamagedText_IsNone) {
  for (const char* text : {"", "{}", "[1]", "{\"version\": 3}", "{\"version\": 999}", "{\"ver"}) {
    EXPECT_FALSE(parse_rates(text)) << text;
  }
}

TEST(Cards, HaveTheRatesOfTheRoofline) {
  const MachineRates h200 = rates_of_card("NVIDIA H200");
  EXPECT_TRUE(h200.estimate);
  EXPECT_NEAR(h200.peak.at("float16"), 790e12, 5e12);  // scripts/gpu/roofline.py
  EXPECT_NEAR(h200.bytes_per_second, 4.3e12, 0.05e12);
  EXPECT_NEAR(rates_of_card("a100").peak.at("float16"), 250e12, 2e12);
}

// Their sums are in float32, without tensor cores.
TEST(Cards, DepthwiseConvolutionOnACard_IsBoundByFloat32) {
  const MachineRates h200 = rates_of_card("h200");
  OpCost cost{.key = "conv2d depthwise bfloat16", .dtype = DType::kBFloat16, .operations = 1e12};
  const double depthwise = h200.bound(cost);
  cost.key = "conv2d 3x3 bfloat16";
  EXPECT_GT(depthwise, 10 * h200.bound(cost));
  cost.key = "conv2d 3x3 float32";
  cost.dtype = DType::kFloat32;
  EXPECT_DOUBLE_EQ(depthwise, h200.bound(cost));
}

TEST(Cards, UnknownName_NamesTheNearest) {
  try {
    rates_of_card("h20");
    FAIL() << "an unknown card was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.next(), ::testing::HasSubstr("h200"));
  }
}

TEST(DataSheetPeak, IsFoundByTheNameOfADevice) {
  EXPECT_EQ(data_sheet_peak("NVIDIA H200", DType::kBFloat16), 989e12);
  EXPECT_EQ(data_sheet_peak("NVIDIA H100 80GB HBM3", DType::kFloat16), 989e12);
  EXPECT_EQ(data_sheet_peak("NVIDIA A100-SXM4-40GB", DType::kFloat32), 19.5e12);
  EXPECT_EQ(data_sheet_peak("NVIDIA H20", DType::kBFloat16), std::nullopt);
  EXPECT_EQ(data_sheet_peak("AMD EPYC 9354", DType::kFloat32), std::nullopt);
  EXPECT_EQ(data_sheet_peak("NVIDIA H200", DType::kInt64), std::nullopt);
}

}  // namespace
}  // namespace fleet
