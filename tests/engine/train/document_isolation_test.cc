// Documents that share a row do not see each other, in a whole job on packed tokens: other tokens
// in one document leave each loss of the other one, and what it trains, the same bits.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "tests/engine/train/trainer_job.h"
#include "text/token_file.h"
#include "train/job_data.h"
#include "train/step_runner.h"

namespace fleet {
namespace {

using ::testing::SizeIs;

// Tokens of the row and of its documents. The longer one comes first: a causal model sees no later
// one.
constexpr int64_t kLength = 16, kFirst = 9, kSecond = 5;

struct Row {
  std::vector<double> first, second;  // the loss of each token of a document
  std::map<std::string, std::vector<float>> trained;
};

class DocumentIsolation : public TrainerTest, public ::testing::WithParamInterface<std::string> {
 protected:
  // changed: the first document has other tokens. isolated: if false, both count as one document.
  Row row(bool changed, bool isolated) const {
    const std::string file = output_ + (changed ? "/changed.bin" : "/tokens.bin");
    std::filesystem::create_directories(output_);
    text::TokenWriter writer(file, text::TokenFormat::kNanoGpt, text::TokenWidth::kUint16);
    writer.add(document(kFirst, changed ? 11 : 3));
    writer.add(document(kSecond, 7));
    writer.finish();
    const Job job = make_job(ConfigTree::from_json(
        R"({"task": "causal_lm", "model": )" + GetParam() +
            R"(, "data": {"source": "tokens", "train": {"file": ")" + file +
            R"("}, "sequence_length": 16, "end_of_text": "0", "batch_size": 1},
            "optimizer": {"name": "sgd"}, "learning_rate": {"name": "constant", "base": 1}})",
        "test"));
    HostDevice device;
    JobData data(job, device, {});
    StepRunner runner(job, &data, device, {});
    runner.begin();
    data.train().start_epoch(0, 0, 0);
    data::Batch batch = *data.train().next();
    return row_of(runner, batch, isolated);
  }

 private:
  // Token 0 ends it.
  static std::vector<uint32_t> document(int64_t tokens, int64_t step) {
    std::vector<uint32_t> all;
    for (int64_t i = 0; i + 1 < tokens; ++i)
      all.push_back(static_cast<uint32_t>(1 + i * step % 29));
    all.push_back(0);
    return all;
  }

  template <typename T>
  static std::span<T> column(const data::Batch& batch, const std::string& name) {
    const auto found = std::ranges::find(batch.columns, name, &data::BatchColumn::name);
    if (found == batch.columns.end()) throw std::runtime_error("no column " + name);
    return {reinterpret_cast<T*>(found->data.data()), found->data.size() / sizeof(T)};
  }

  static Row row_of(StepRunner& runner, const data::Batch& batch, bool isolated) {
    const auto documents = column<int64_t>(batch, "document_ids");
    const auto labels = column<int64_t>(batch, "labels");
    const auto weights = column<float>(batch, "loss_weight");
    const std::vector<int64_t> own(documents.begin(), documents.end());
    if (!isolated)
      std::ranges::replace_if(
          documents, [](int64_t id) { return id >= 0; }, 0);
    Row row;
    std::vector<float> of_second(kLength, 0);
    for (int64_t at = 0; at < kLength; ++at) {
      if (labels[at] < 0) continue;
      const bool second = std::ranges::count(own, own[at]) == kSecond - 1;
      std::ranges::fill(weights, 0);
      weights[at] = 1;
      of_second[at] = second ? 1 : 0;
      (second ? row.second : row.first).push_back(runner.evaluate(batch).loss());
    }
    std::ranges::copy(of_second, weights.begin());
    const float rate = 1;
    runner.train(batch, false, rate);
    runner.executor().synchronize();
    row.trained = weights_of(runner.executor());
    return row;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Models, DocumentIsolation,
    ::testing::Values(
        R"({"name": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 24,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "max_position_embeddings": 16, "attention_dropout": 0.2})",
        R"({"name": "gpt2", "vocab_size": 32, "n_embd": 16, "n_layer": 2, "n_head": 4,
            "n_positions": 16, "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1})"));

TEST_P(DocumentIsolation, OtherTokens_LeaveTheOtherDocumentsBits) {
  const Row usual = row(false, true), changed = row(true, true);
  ASSERT_THAT(usual.first, SizeIs(kFirst - 1));
  ASSERT_THAT(usual.second, SizeIs(kSecond - 1));
  EXPECT_NE(usual.first, changed.first);
  EXPECT_EQ(usual.second, changed.second);
  EXPECT_TRUE(usual.trained == changed.trained);
}

// What the test above would see.
TEST_P(DocumentIsolation, OneDocument_SeesItsTokens) {
  const Row usual = row(false, false), changed = row(true, false);
  EXPECT_NE(usual.second, changed.second);
  EXPECT_FALSE(usual.trained == changed.trained);
}

}  // namespace
}  // namespace fleet
