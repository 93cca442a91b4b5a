#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

MetaOptimizerDef def(const std::string& name, const std::string& paddle_class,
                     const std::vector<std::string>& wraps) {
  MetaOptimizerDef made;
  made.name = name;
  made.paddle_class = paddle_class;
  made.wraps = wraps;
  return made;
}

// A meta-optimizer with the ones that it may wrap in Paddle.
const MetaOptimizerDef* link(const std::string& name) {
  static const std::vector<MetaOptimizerDef> kAll = {
      def("amp", "AMPOptimizer", {"lars", "lamb", "recompute"}),
      def("adaptive_localsgd", "AdaptiveLocalSGDOptimizer", {"amp"}),
      def("dgc", "DGCOptimizer", {}),
      def("fp16_allreduce", "FP16AllReduceOptimizer",
          {"lars", "lamb", "recompute", "localsgd", "gradient_merge", "adaptive_localsgd"}),
      def("gradient_merge", "GradientMergeOptimizer", {"amp", "lars", "lamb", "recompute"}),
      def("lamb", "LambOptimizer", {}),
      def("lars", "LarsOptimizer", {}),
      def("localsgd", "LocalSGDOptimizer", {"amp"}),
      def("recompute", "RecomputeOptimizer", {"lars", "lamb", "dgc"}),
  };
  for (const MetaOptimizerDef& one : kAll) {
    if (one.name == name) return &one;
  }
  ADD_FAILURE() << name;
  return &kAll.front();
}

std::vector<std::string> chosen(const std::vector<std::string>& names) {
  MetaOptimizerDefs links;
  for (const std::string& name : names) links.push_back(link(name));
  return choose_chain(std::move(links));
}

TEST(Chain, Nothing_IsEmpty) { EXPECT_THAT(chosen({}), IsEmpty()); }

TEST(Chain, OneAlone_Acts) { EXPECT_THAT(chosen({"dgc"}), ElementsAre("dgc")); }

TEST(Chain, WithoutAnEdge_TheFirstByClassWins) {
  EXPECT_THAT(chosen({"dgc", "amp"}), ElementsAre("amp"));
  EXPECT_THAT(chosen({"lars", "lamb"}), ElementsAre("lamb"));
  EXPECT_THAT(chosen({"fp16_allreduce", "amp"}), ElementsAre("amp"));
  // "AMP" and "Adaptive" come in the order of their bytes.
  EXPECT_THAT(chosen({"localsgd", "adaptive_localsgd"}), ElementsAre("adaptive_localsgd"));
  EXPECT_THAT(chosen({"localsgd", "gradient_merge"}), ElementsAre("gradient_merge"));
}

TEST(Chain, AllThatGoTogether_AreKept) {
  EXPECT_THAT(chosen({"lamb", "recompute", "amp", "gradient_merge"}),
              ElementsAre("gradient_merge", "amp", "recompute", "lamb"));
  EXPECT_THAT(chosen({"recompute", "dgc"}), ElementsAre("recompute", "dgc"));
}

TEST(Chain, Longest_WinsOverTheFirst) {
  // amp with lamb are two; gradient_merge with amp and lamb three.
  EXPECT_THAT(chosen({"amp", "gradient_merge", "lamb", "dgc"}),
              ElementsAre("gradient_merge", "amp", "lamb"));
}

TEST(Chain, WhatOneWraps_NeedNotGoTogether) {
  // recompute may wrap both, but dgc cannot be combined with lars.
  EXPECT_THAT(chosen({"dgc", "lars", "recompute"}), ElementsAre("recompute", "dgc"));
  EXPECT_THAT(chosen({"adaptive_localsgd", "fp16_allreduce", "localsgd"}),
              ElementsAre("fp16_allreduce", "adaptive_localsgd"));
}

TEST(Chain, OfPaddle_TheOneThatGrewLastWins) {
  EXPECT_THAT(chosen({"fp16_allreduce", "gradient_merge", "lars", "recompute"}),
              ElementsAre("gradient_merge", "recompute", "lars"));
}

TEST(Chain, Conflicts_AreWithWhatNeitherMayWrap) {
  EXPECT_THAT(conflicts(*link("fp16_allreduce"), {link("amp"), link("lars")}), ElementsAre("amp"));
  EXPECT_THAT(conflicts(*link("lars"), {link("recompute"), link("dgc")}), ElementsAre("dgc"));
}

}  // namespace
}  // namespace fleet
