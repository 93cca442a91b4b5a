// Attention that cuDNN plans for an H200 that is not there. Its kernels are compiled while it
// plans, which needs a driver: a fake one.
#include "backend/cuda/dnn_attention.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <set>

#include "backend/cuda/dnn.h"
#include "tests/engine/backend/cuda/dnn/gpus.h"

namespace fleet::cuda::dnn {
namespace {

class DnnAttention : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // cuDNN finds the library that is loaded under the driver's name.
    ASSERT_NE(dlopen(FLEET_FAKE_DRIVER, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  }
  static size_t plans(const Attention& attention) {
    static const Target h200(h200_properties());
    return candidate_plans(make_graph(attention), h200, {.workspace = 512u << 20}, 1).size();
  }
  // Forward and backward, in both 16-bit types.
  static void expect_planned(Attention attention) {
    for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
      attention.dtype = dtype;
      for (const bool gradient : {false, true}) {
        attention.gradient = gradient;
        EXPECT_TRUE(plans(attention)) << attention.text();
      }
    }
  }
};

Attention packed(int64_t batch, int64_t tokens, int64_t heads, int64_t kv_heads, int64_t size) {
  const int64_t stride = (heads + 2 * kv_heads) * size;
  return {.batch = batch,
          .tokens = tokens,
          .heads = heads,
          .kv_heads = kv_heads,
          .size = size,
          .q_stride = stride,
          .kv_stride = stride};
}

TEST_F(DnnAttention, Gpt2WithDocuments_IsPlannedInPlace) {
  Attention attention = packed(32, 1024, 12, 12, 64);
  attention.causal = attention.documents = true;
  expect_planned(attention);
}

TEST_F(DnnAttention, Causal_IsPlanned) {
  Attention attention = packed(32, 1024, 12, 12, 64);
  attention.causal = true;
  expect_planned(attention);
}

// k and v apart, as rope leaves them.
TEST_F(DnnAttention, GroupedQueries_ArePlanned) {
  Attention attention = packed(16, 1024, 9, 3, 64);
  attention.q_stride = 9 * 64;
  attention.kv_stride = 3 * 64;
  attention.causal = attention.documents = true;
  expect_planned(attention);
}

TEST_F(DnnAttention, VisionTransformer_IsPlanned) { expect_planned(packed(128, 197, 12, 12, 64)); }

TEST_F(DnnAttention, LargeHeads_ArePlanned) {
  Attention attention = packed(2, 256, 4, 4, 128);
  attention.causal = attention.documents = true;
  expect_planned(attention);
}

// Sequences of any length are planned or left to our own kernels, without an error.
TEST_F(DnnAttention, ShortSequences_DoNotThrow) {
  for (const int64_t tokens : {1, 2, 37}) {
    Attention attention = packed(1, tokens, 2, 1, 8);
    for (const bool gradient : {false, true}) {
      attention.gradient = gradient;
      attention.documents = attention.causal = tokens == 2;
      EXPECT_NO_THROW(plans(attention)) << attention.text();
    }
  }
}

// That the tests above can fail.
TEST_F(DnnAttention, HeadsOf9_HaveNoPlan) { EXPECT_FALSE(plans(packed(2, 128, 2, 2, 9))); }

TEST_F(DnnAttention, Tensors_HaveDistinctIds) {
  Attention attention = packed(2, 16, 2, 2, 8);
  attention.causal = attention.documents = attention.gradient = true;
  std::set<int64_t> ids;
  for (const Tensor& tensor : tensors_of(attention)) EXPECT_TRUE(ids.insert(tensor.id).second);
  EXPECT_EQ(ids.size(), 16u);
}

}  // namespace
}  // namespace fleet::cuda::dnn
