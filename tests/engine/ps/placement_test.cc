#include "ps/placement.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "tests/errors.h"

namespace fleet::ps {
namespace {

const std::vector<PlacedParameter> kModel = {{.name = "embedding", .elements = 1'000'003},
                                             {.name = "fc.weight", .elements = 40'000},
                                             {.name = "fc.bias", .elements = 200},
                                             {.name = "head", .elements = 8192, .whole = true}};

// Every element is in one block.
void expect_complete(const Placement& placement, const std::vector<PlacedParameter>& parameters) {
  std::vector<int64_t> next(parameters.size(), 0);
  for (const Block& block : placement.blocks) {
    EXPECT_EQ(block.begin, next[block.parameter]);
    EXPECT_GT(block.end, block.begin);
    EXPECT_GE(block.server, 0);
    EXPECT_LT(block.server, placement.servers);
    next[block.parameter] = block.end;
  }
  for (size_t p = 0; p < parameters.size(); ++p) EXPECT_EQ(next[p], parameters[p].elements);
}

TEST(Placement, AnyNumberOfServers_HoldsEachElementOnce) {
  for (int servers = 1; servers <= 9; ++servers) {
    expect_complete(place(kModel, {}, servers), kModel);
    expect_complete(place(kModel, {}, servers, {.min_elements = 7, .alignment = 1}), kModel);
  }
}

TEST(Placement, Blocks_AreNotSmallerThanAskedFor) {
  for (int servers = 1; servers <= 9; ++servers) {
    for (const Block& block : place(kModel, {}, servers).blocks) {
      const int64_t all = kModel[block.parameter].elements;
      EXPECT_GE(block.elements(), std::min<int64_t>(all, 8192));
      EXPECT_EQ(block.begin % 1024, 0);
    }
  }
}

TEST(Placement, Servers_HoldAboutTheSameBytes) {
  for (int servers = 2; servers <= 5; ++servers) {
    const Placement placement = place(kModel, {}, servers);
    std::vector<int64_t> load(servers);
    for (const Block& block : placement.blocks) load[block.server] += block.elements();
    const int64_t all = std::accumulate(load.begin(), load.end(), int64_t{0});
    for (const int64_t one : load) EXPECT_NEAR(one, all / servers, 0.05 * all) << servers;
  }
}

TEST(Placement, WholeParameter_IsOneBlock) {
  const std::vector<PlacedParameter> one = {{.name = "w", .elements = 1 << 20, .whole = true}};
  EXPECT_EQ(place(one, {}, 4).blocks.size(), 1u);
}

TEST(Placement, MoreServersThanBlocks_LeavesSomeEmpty) {
  const std::vector<PlacedParameter> one = {{.name = "w", .elements = 10}};
  const Placement placement = place(one, {}, 3);
  EXPECT_EQ(placement.blocks_of(0).size(), 1u);
  EXPECT_TRUE(placement.blocks_of(2).empty());
}

// Of 12 GiB; the largest block has 1 GiB.
TEST(Placement, LargeParameter_IsDividedFurther) {
  const std::vector<PlacedParameter> large = {{.name = "w", .elements = int64_t{3} << 30}};
  constexpr int64_t kMost = int64_t{1} << 28;
  for (const int servers : {1, 2, 5, 16}) {
    const Placement placement = place(large, {}, servers);
    expect_complete(placement, large);
    std::vector<int64_t> load(servers);
    for (const Block& block : placement.blocks) {
      EXPECT_LE(block.elements(), kMost + 1024);
      load[block.server] += block.elements();
    }
    EXPECT_LE(std::ranges::max(load) - std::ranges::min(load), kMost) << servers;
  }
}

TEST(Placement, LargeParameterThatMustBeWhole_IsRefused) {
  std::vector<PlacedParameter> large = {{.name = "w", .elements = int64_t{1} << 29, .whole = true}};
  EXPECT_EQ(place(large, {}, 2).blocks.size(), 1u);
  large[0].elements += 1;
  EXPECT_THAT(thrown_by([&] { place(large, {}, 2); }), IsError(ErrorCode::kUnsupported, "w"));
}

TEST(Placement, KeptVariables_FillTheServersWithLess) {
  const std::vector<PlacedParameter> one = {{.name = "w", .elements = 10}};
  const std::vector<PlacedVar> kept = {{"mean", 400}, {"variance", 400}};
  EXPECT_THAT(place(one, kept, 3).kept, testing::ElementsAre(1, 2));
}

TEST(Placement, Hash_DiffersWithEachOfItsParts) {
  const auto hash = [](std::vector<PlacedParameter> parameters, std::vector<PlacedVar> kept,
                       int servers, const PlacementOptions& options = {}) {
    return hash_of(place(parameters, kept, servers, options), parameters, kept);
  };
  const uint64_t usual = hash(kModel, {}, 2);
  EXPECT_EQ(hash(kModel, {}, 2), usual);
  EXPECT_NE(hash(kModel, {}, 3), usual);
  EXPECT_NE(hash(kModel, {}, 2, {.min_elements = 977 * 1024}), usual);
  EXPECT_NE(hash(kModel, {{"mean", 400}}, 2), usual);
  std::vector<PlacedParameter> renamed = kModel;
  renamed[1].name = "fc2.weight";
  EXPECT_NE(hash(renamed, {}, 2), usual);
}

TEST(Placement, Text_HasALineForEachServer) {
  const std::string text = text_of(place(kModel, {}, 2), kModel, {});
  EXPECT_THAT(text, testing::HasSubstr("server 0 holds "));
  EXPECT_THAT(text, testing::HasSubstr("server 1 holds "));
}

}  // namespace
}  // namespace fleet::ps
