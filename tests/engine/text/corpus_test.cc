#include "text/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "tests/errors.h"
#include "text/bpe_trainer.h"
#include "text/train_corpus.h"

namespace fleet::text {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

class CorpusTest : public ::testing::Test {
 protected:
  CorpusTest() : folder_(::testing::TempDir() + "/corpus_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/below");
  }
  ~CorpusTest() override { fs::remove_all(folder_); }

  std::string put(const std::string& name, const std::string& text) const {
    std::string path = folder_ + "/" + name;
    write_file_atomically(path, text);
    return path;
  }
  std::string put_gzip(const std::string& name, const std::string& text) const {
    std::string path = folder_ + "/" + name;
    gzFile file = ::gzopen(path.c_str(), "wb");
    ::gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    ::gzclose(file);
    return path;
  }
  static std::vector<std::string> names(const std::vector<CorpusFile>& files) {
    std::vector<std::string> all;
    for (const CorpusFile& file : files) all.push_back(fs::path(file.path).filename().string());
    return all;
  }
  // The lines of all parts, and their places.
  static std::vector<std::string> lines(const std::string& path, int64_t part_bytes) {
    const std::vector<CorpusFile> files = find_corpus({path});
    std::vector<std::string> all;
    for (const CorpusPart& part : corpus_parts(files, part_bytes)) {
      LineReader reader(files[0], part);
      for (std::string_view line; reader.next(&line);) {
        EXPECT_EQ(reader.where(), path + ":" + std::to_string(all.size() + 1));
        all.emplace_back(line);
      }
    }
    return all;
  }

  const std::string folder_;
};

TEST_F(CorpusTest, Folder_GivesTextsAndJsonLinesByName) {
  put("b.txt", "b");
  put("a.jsonl", "{}");
  put("below/c.ndjson.gz", "");
  put("note.md", "");
  EXPECT_THAT(names(find_corpus({folder_})), ElementsAre("a.jsonl", "b.txt", "c.ndjson.gz"));
  EXPECT_THAT(names(find_corpus({folder_ + "/*.txt", folder_ + "/note.md"})),
              ElementsAre("b.txt", "note.md"));
}

TEST_F(CorpusTest, OtherFormats_AreRefusedByName) {
  const std::string parquet = put("x.parquet", "PAR1"), text = put("x.txt", "");
  EXPECT_THAT(thrown_by([&] { find_corpus({parquet}); }), IsUsageError(parquet));
  EXPECT_THAT(thrown_by([&] { find_corpus({folder_, text}); }), IsUsageError(text));
  EXPECT_THAT(thrown_by([&] { find_corpus({folder_ + "/below"}); }), IsUsageError());
  EXPECT_THAT(thrown_by([&] { find_corpus({folder_ + "/*.csv"}); }), IsError(ErrorCode::kNotFound));
  EXPECT_THAT(thrown_by([&] { find_corpus({folder_ + "/none"}); }), IsError(ErrorCode::kNotFound));
}

TEST_F(CorpusTest, Lines_AreTheSameForAllSizesOfParts) {
  const std::string text = "first\n\nthird line\r\n4\nfifth without end";
  const std::string path = put("x.txt", text), gzip = put_gzip("y.txt.gz", text);
  const std::vector<std::string> expected = {"first\n", "\n", "third line\r\n", "4\n",
                                             "fifth without end"};
  for (const int64_t bytes : {1, 2, 3, 7, 20, 1000}) EXPECT_EQ(lines(path, bytes), expected);
  EXPECT_EQ(lines(gzip, 5), expected);
}

TEST_F(CorpusTest, MarkOfUtf8_IsNoText) {
  EXPECT_THAT(lines(put("x.txt",
                        "\xEF\xBB\xBF"
                        "a\nb"),
                    100),
              ElementsAre("a\n", "b"));
  EXPECT_THAT(lines(put_gzip("y.txt.gz",
                             "\xEF\xBB\xBF"
                             "a\nb"),
                    100),
              ElementsAre("a\n", "b"));
  const std::string wide = put("z.txt", std::string("\xFF\xFE"
                                                    "a\0b\0",
                                                    6));
  EXPECT_THAT(thrown_by([&] { lines(wide, 100); }), IsUsageError(wide));
}

TEST_F(CorpusTest, LongGzip_GivesAllLines) {
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += std::to_string(i) + "\n";
  const std::string path = put_gzip("x.txt.gz", text);
  const std::vector<CorpusFile> files = find_corpus({path});
  LineReader reader(files[0], corpus_parts(files, 1)[0]);
  std::string all;
  for (std::string_view line; reader.next(&line);) all += line;
  EXPECT_EQ(all, text);
  EXPECT_EQ(CorpusText(files[0]).bytes(), text);
}

TEST_F(CorpusTest, Gzip_IsKnownByItsFirstBytes) {
  const std::string other_name = put_gzip("words.jsonl.dz", "{}\n"),
                    no_name = put_gzip("a.txt", "b");
  EXPECT_TRUE(find_corpus({other_name})[0].compressed);
  EXPECT_TRUE(find_corpus({other_name})[0].json_lines);
  EXPECT_EQ(CorpusText(find_corpus({no_name})[0]).bytes(), "b");
  const std::string false_name = put("x.txt.gz", "plain text");
  EXPECT_THAT(thrown_by([&] { find_corpus({false_name}); }), IsUsageError(false_name));
}

TEST_F(CorpusTest, StandardInput_IsRefused) {
  EXPECT_THAT(thrown_by([] { find_corpus({"-"}); }), IsUsageError("-"));
}

TEST_F(CorpusTest, CorpusWithoutAWord_TrainsNothing) {
  const SplitStyle style = split_style("gpt2");
  const TextSplitter splitter(Json::parse(style.normalizer), Json::parse(style.pre_tokenizer),
                              "style");
  const auto count = [&](const std::string& path) {
    WordCounts counts;
    count_corpus(find_corpus({path}), splitter, {}, &counts, {});
    return counts.words().size();
  };
  for (const std::string& path : {put("empty.txt", ""), put("a.jsonl", "{\"text\": \"\"}\n\n")}) {
    EXPECT_THAT(thrown_by([&] { count(path); }), IsUsageError(path));
  }
  EXPECT_EQ(count(put("b.txt", "one")), 1u);
}

TEST_F(CorpusTest, CutGzip_IsRefused) {
  const std::string path = put_gzip("x.txt.gz", std::string(100'000, 'x') + "end");
  fs::resize_file(path, fs::file_size(path) - 9);
  const CorpusFile file = find_corpus({path})[0];
  EXPECT_THAT(thrown_by([&] { CorpusText text(file); }), IsUsageError(path));
}

TEST(JsonLine, Text_IsTheStringAtItsKey) {
  EXPECT_EQ(json_line_text(R"({"id": 3, "text": "a\nb"})", "text", "f:1"), "a\nb");
  EXPECT_EQ(json_line_text(" \r\n", "text", "f:1"), std::nullopt);
  for (const char* line :
       {R"({"text": 3})", R"({"body": "x"})", "[]", "{", "{\"text\": \"\xff\"}"}) {
    EXPECT_THAT(thrown_by([&] { json_line_text(line, "text", "f:7"); }), IsUsageError("f:7"))
        << line;
  }
}

TEST(BadByte, IsFoundWithItsLine) {
  const std::string text = "a\nb\xC3\xA9\nc\xFF";
  EXPECT_EQ(first_bad_byte(text.substr(0, 6)), std::nullopt);
  ASSERT_EQ(first_bad_byte(text), 7u);
  EXPECT_EQ(place_of_byte("f", text, 7), "f:3");
}

}  // namespace
}  // namespace fleet::text
