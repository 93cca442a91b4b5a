// Tokenizers of public models, as scripts/fetch_tokenizers.py fetches them. Skips without them.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/env.h"
#include "base/file.h"
#include "text/tokenizer.h"

namespace fleet::text {
namespace {

struct RealFile {
  const char* name;
  size_t ids;  // of GPL-3 with Hugging Face's tokenizers 0.23.3
};

class RealTokenizers : public ::testing::Test {
 protected:
  static std::string file(const std::string& name) {
    return env_or("FLEET_TOKENIZERS", "/nonexistent") + "/" + name;
  }
};

class RealLicence : public RealTokenizers, public ::testing::WithParamInterface<RealFile> {};

constexpr const char* kLicence = "/usr/share/common-licenses/GPL-3";

TEST_P(RealLicence, Tokens_AreAsManyAsKnown) {
  const auto& [name, count] = GetParam();
  if (!std::filesystem::exists(file(name))) {
    GTEST_SKIP() << "FLEET_TOKENIZERS has no " << name << " (scripts/fetch_tokenizers.py)";
  }
  if (!std::filesystem::exists(kLicence)) GTEST_SKIP() << kLicence << " is not here";
  const std::string text = read_file(kLicence);
  const Tokenizer tokenizer = Tokenizer::load(file(name));
  std::vector<uint32_t> ids;
  tokenizer.encode_ordinary(text, ids);
  EXPECT_EQ(ids.size(), count);
  if (std::string_view(name) != "minilm.json") {
    EXPECT_EQ(tokenizer.decode(ids, false), text);
  }
}

INSTANTIATE_TEST_SUITE_P(
    RealTokenizers, RealLicence,
    ::testing::Values(RealFile{"gpt2.json", 8075}, RealFile{"llama3.json", 7455},
                      RealFile{"llama3.tiktoken", 7455}, RealFile{"qwen2.json", 7486},
                      RealFile{"qwen2.tiktoken", 7486}, RealFile{"deepseek.json", 7551},
                      RealFile{"llama2.json", 8707}, RealFile{"minilm.json", 6840}));

// Of the tokens that are whole characters, how many encode to something else than themselves.
size_t entries_that_differ(const Tokenizer& tokenizer, size_t* entries) {
  size_t differ = 0;
  *entries = 0;
  for (uint32_t id = 0; id < 128000; ++id) {
    const std::string text = tokenizer.decode(std::span(&id, 1), false);
    if (text.find("\xEF\xBF\xBD") != std::string::npos) continue;
    ++*entries;
    differ += tokenizer.encode(text, false) != std::vector<uint32_t>{id};
  }
  return differ;
}

// 588 tokens are made by no sequence of merges: only the look-up of the whole piece finds them.
TEST_F(RealTokenizers, EntriesOfLlama3_EncodeToThemselvesByIgnoreMerges) {
  if (!std::filesystem::exists(file("llama3.json"))) {
    GTEST_SKIP() << "FLEET_TOKENIZERS has no llama3.json (scripts/fetch_tokenizers.py)";
  }
  std::string json = read_file(file("llama3.json"));
  size_t entries;
  EXPECT_EQ(entries_that_differ(Tokenizer::from_json(json, "llama3"), &entries), 0u);
  EXPECT_EQ(entries, 126639u);
  const size_t at = json.find("\"ignore_merges\":true");
  const size_t spaced = json.find("\"ignore_merges\": true");
  ASSERT_NE(std::min(at, spaced), std::string::npos);
  json.replace(json.find("true", std::min(at, spaced)), 4, "false");
  EXPECT_EQ(entries_that_differ(Tokenizer::from_json(json, "llama3"), &entries), 588u);
}

}  // namespace
}  // namespace fleet::text
