// Lines of files as rows: files, folders, patterns, gzip and tar; ends of lines, marks, long files.
#include <gmock/gmock.h>

#include <filesystem>

#include "data/line_index_cache.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using testing::gzip;
using ::testing::HasSubstr;
using testing::TempFolder;
using testing::write;

std::string check(std::string_view line) {
  return line.starts_with("bad") ? "it is " + std::string(line) : "";
}

LineIndexOptions options(int threads = 2) {
  return {.make_check = [] { return check; }, .threads = threads};
}

class LineFilesTest : public ::testing::Test {
 protected:
  std::vector<LineFile> find(std::vector<std::string> words) const {
    return find_line_files({.words = std::move(words),
                            .root = folder_.path(),
                            .key = "data.train.file",
                            .cache = folder_ / "cache"});
  }
  LineIndex index(std::vector<std::string> words, LineIndexOptions how = options()) const {
    return {find(std::move(words)), how};
  }
  std::vector<std::string> lines_of(std::vector<std::string> words,
                                    LineIndexOptions how = options()) const {
    const LineIndex lines = index(std::move(words), how);
    std::vector<std::string> all;
    std::string scratch;
    for (int64_t i = 0; i < lines.rows(); ++i) all.emplace_back(lines.read(i, &scratch));
    return all;
  }

  // A ustar archive.
  static std::string tar(const std::vector<std::pair<std::string, std::string>>& members) {
    std::string all;
    for (const auto& [name, content] : members) {
      std::string header(512, '\0');
      header.replace(0, name.size(), name);
      char number[13];
      std::snprintf(number, sizeof number, "%011o", static_cast<unsigned>(content.size()));
      header.replace(124, 11, number);
      header[156] = '0';
      header.replace(257, 8,
                     std::string("ustar\0"
                                 "00",
                                 8));
      header.replace(148, 8, "        ");
      unsigned sum = 0;
      for (const char c : header) sum += static_cast<unsigned char>(c);
      std::snprintf(number, sizeof number, "%06o", sum);
      header.replace(148, 8, std::string(number, 6) + std::string("\0 ", 2));
      all += header + content + std::string((512 - content.size() % 512) % 512, '\0');
    }
    return all + std::string(1024, '\0');
  }

  const TempFolder folder_;
};

TEST_F(LineFilesTest, LineEndsMarksAndEmptyLines_AreNoPartOfRows) {
  write(folder_ / "a", "\xEF\xBB\xBFone\r\n\n \t\r\ntwo\nthree \r");
  EXPECT_THAT(lines_of({"a"}), ElementsAre("one", "two", "three "));
  const LineIndex lines = index({"a"});
  EXPECT_EQ(lines.name(0), folder_ / "a:1");
  EXPECT_EQ(lines.name(2), folder_ / "a:5");
}

TEST_F(LineFilesTest, Header_IsTheFirstLineOfEachFile) {
  write(folder_ / "a", "names\n1\n");
  write(folder_ / "b", "names\n2");
  LineIndexOptions how = options();
  how.header = true;
  EXPECT_THAT(lines_of({"a", "b"}, how), ElementsAre("1", "2"));
  EXPECT_EQ(index({"a", "b"}, how).name(1), folder_ / "b:2");
}

TEST_F(LineFilesTest, BrokenLines_AreNoRows) {
  write(folder_ / "a", "bad 1\n1\n2\nbad 2\n\n3\nbad 3\nbad 4\n4\n");
  EXPECT_THAT(lines_of({"a"}), ElementsAre("1", "2", "3", "4"));
  const LineIndex lines = index({"a"});
  EXPECT_EQ(lines.broken_lines(), 4);
  ASSERT_EQ(lines.broken().size(), 3u);  // the first ones
  EXPECT_EQ(lines.broken()[1].why, "it is bad 2");
  EXPECT_EQ(lines.name(lines.broken()[1]), folder_ / "a:4");
  EXPECT_EQ(lines.rows_before(lines.broken()[1]), 2);
  EXPECT_TRUE(lines.is_first_of_file(lines.broken()[0]));
  EXPECT_FALSE(lines.is_first_of_file(lines.broken()[1]));
  EXPECT_EQ(lines.name(3), folder_ / "a:9");
}

TEST_F(LineFilesTest, FoldersAndPatterns_GiveFilesByName) {
  for (const char* name : {"f/b", "f/a", "f/_SUCCESS", "f/.hidden", "f/part-1", "f/part-0"}) {
    std::filesystem::create_directories(folder_ / "f/below");
    write(folder_ / name, std::string(name) + "\n");
  }
  EXPECT_THAT(lines_of({"f"}), ElementsAre("f/a", "f/b", "f/part-0", "f/part-1"));
  EXPECT_THAT(lines_of({"f/part-*", "f/a"}), ElementsAre("f/part-0", "f/part-1", "f/a"));
  EXPECT_THAT(lines_of({"f/part-{1..1}"}), ElementsAre("f/part-1"));
}

TEST_F(LineFilesTest, WordsThatNameNothing_AreRefused) {
  std::filesystem::create_directories(folder_ / "empty");
  write(folder_ / "empty/_SUCCESS", "");
  EXPECT_THAT(thrown_by([&] { find({"empty"}); }), IsUsageError(folder_ / "empty"));
  EXPECT_THAT(thrown_by([&] { find({"x*"}); }), IsUsageError(EndsWith("x*")));
  EXPECT_THAT(thrown_by([&] {
                check_line_files({.words = {"none"}, .root = folder_.path(), .key = "the.key"});
              }),
              IsUsageError("the.key"));
}

TEST_F(LineFilesTest, Gzip_IsDecompressedOnceIntoTheCache) {
  write(folder_ / "day", gzip("one\ntwo\n"));  // recognised without an ending
  EXPECT_THAT(lines_of({"day"}), ElementsAre("one", "two"));
  EXPECT_EQ(index({"day"}).name(1), folder_ / "day:2");
  int files = 0;
  for (const auto& one : std::filesystem::directory_iterator(folder_ / "cache")) {
    ++files;
    write(one.path().string(), "cached\n");
  }
  EXPECT_EQ(files, 1);
  EXPECT_THAT(lines_of({"day"}), ElementsAre("cached"));
  write(folder_ / "day", gzip("other\n"));
  EXPECT_THAT(lines_of({"day"}), ElementsAre("other"));
}

TEST_F(LineFilesTest, DamagedGzip_IsRefusedAndLeavesNoFile) {
  const std::string whole = gzip("one\ntwo\n");
  write(folder_ / "cut.gz", whole.substr(0, whole.size() - 9));
  EXPECT_THAT(thrown_by([&] { find({"cut.gz"}); }), IsUsageError(folder_ / "cut.gz"));
  for (const auto& one : std::filesystem::directory_iterator(folder_ / "cache")) {
    EXPECT_THAT(one.path().string(), EndsWith(".lock"));
  }
}

TEST_F(LineFilesTest, TarFiles_GiveTheirMembers) {
  const std::string archive =
      tar({{"d/part-1", "1\n2\n"}, {"d/._part-1", "x\n"}, {"d/empty", ""}, {"d/part-0", "3"}});
  write(folder_ / "a.tar", archive);
  write(folder_ / "a.tar.gz", gzip(archive));
  EXPECT_THAT(lines_of({"a.tar"}), ElementsAre("1", "2", "3"));
  EXPECT_THAT(lines_of({"a.tar.gz"}), ElementsAre("1", "2", "3"));
  EXPECT_EQ(index({"a.tar.gz"}).name(2), folder_ / "a.tar.gz:d/part-0:1");
  EXPECT_THAT(index({"a.tar"}).files_without_rows(), ElementsAre(folder_ / "a.tar:d/empty"));
  write(folder_ / "none.tar", tar({{"._x", "1\n"}}));
  EXPECT_THAT(thrown_by([&] { find({"none.tar"}); }), IsUsageError(folder_ / "none.tar"));
  write(folder_ / "inner.tar", tar({{"a.gz", gzip("1\n")}}));
  EXPECT_THAT(thrown_by([&] { find({"inner.tar"}); }), IsUsageError(folder_ / "inner.tar:a.gz"));
}

TEST_F(LineFilesTest, OtherFormats_AreRefusedByTheirFirstBytes) {
  for (const char* start : {"\x28\xb5\x2f\xfd..", "BZh91AY", "PK\x03\x04..", "PAR1..."}) {
    write(folder_ / "a", start);
    EXPECT_THAT(thrown_by([&] { find({"a"}); }), IsUsageError(folder_ / "a")) << start;
  }
  write(folder_ / "wide", std::string("\xff\xfe"
                                      "1\0\n\0",
                                      6));  // UTF-16
  EXPECT_THAT(thrown_by([&] { index({"wide"}); }), IsUsageError(folder_ / "wide"));
}

TEST_F(LineFilesTest, LongFiles_GiveEachLineOnce) {
  // Lines of many lengths around the ends of the parts of 4 MiB.
  std::string text;
  std::vector<size_t> lengths;
  while (text.size() < (9u << 20)) {
    const size_t i = lengths.size();
    lengths.push_back(i % 7 == 0 ? 0 : i * 7919 % 5003);
    text += std::to_string(i) + (i % 11 == 3 ? "bad" : ".") + std::string(lengths.back(), 'x');
    text += i % 13 == 0 ? "\r\n\n" : "\n";
  }
  write(folder_ / "long", text);
  write(folder_ / "more", "bad\nlast");
  for (const int threads : {1, 3}) {
    const LineIndex lines = index({"long", "more"}, options(threads));
    ASSERT_EQ(lines.rows(), static_cast<int64_t>(lengths.size()) + 1);
    std::string scratch;
    for (size_t i = 0; i < lengths.size(); ++i) {
      const std::string_view line = lines.read(static_cast<int64_t>(i), &scratch);
      const std::string start = std::to_string(i) + (i % 11 == 3 ? "bad" : ".");
      ASSERT_TRUE(line.starts_with(start)) << i;
      ASSERT_EQ(line.size(), start.size() + lengths[i]) << i;
    }
    EXPECT_EQ(lines.read(lines.rows() - 1, &scratch), "last");
    EXPECT_EQ(lines.name(lines.rows() - 1), folder_ / "more:2");
    const size_t last = lengths.size() - 1;
    EXPECT_EQ(lines.name(static_cast<int64_t>(last)),
              folder_ / ("long:" + std::to_string(last + 1 + (last + 12) / 13)));
  }
}

TEST_F(LineFilesTest, LinesOfAMebibyte_AreTheLimit) {
  const std::string longest(1u << 20, 'x');
  write(folder_ / "a", "1\n" + longest + "\n" + std::string(3u << 20, '\n') + "2\n" + longest);
  EXPECT_EQ(index({"a"}).rows(), 4);
  write(folder_ / "b", "1\n" + longest + "x\n2\n");
  EXPECT_THAT(thrown_by([&] { index({"b"}); }), IsUsageError(folder_ / "b"));
  write(folder_ / "c", std::string(9u << 20, 'x'));
  EXPECT_THAT(thrown_by([&] { index({"c"}); }), IsUsageError(folder_ / "c"));
}

TEST_F(LineFilesTest, SavedIndex_IsTheSame) {
  write(folder_ / "a", "bad\n1\n\n2\nbad\n3");
  write(folder_ / "b", "");
  const std::vector<LineFile> files = find({"a", "b"});
  const LineIndex made(files, options());
  const std::string bytes = made.save();
  const auto loaded = LineIndex::load(files, bytes);
  ASSERT_NE(loaded, nullptr);
  EXPECT_EQ(loaded->rows(), 3);
  EXPECT_EQ(loaded->broken_lines(), 2);
  EXPECT_EQ(loaded->broken()[1].why, made.broken()[1].why);
  std::string scratch;
  for (int64_t row = 0; row < 3; ++row) {
    EXPECT_EQ(loaded->name(row), made.name(row));
    EXPECT_EQ(loaded->read(row, &scratch), std::to_string(row + 1));
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_EQ(LineIndex::load(files, damaged), nullptr) << i;
    EXPECT_EQ(LineIndex::load(files, bytes.substr(0, i)), nullptr) << i;
  }
}

TEST_F(LineFilesTest, CachedIndex_IsMadeOnceForFilesAndIdentity) {
  write(folder_ / "a", "1\n2\n");
  int checked = 0;
  const auto rows = [&](const std::string& identity) {
    LineIndexOptions how = options(1);
    how.make_check = [&] { return [&](std::string_view) { return ++checked, std::string(); }; };
    LineIndexCache cache{.folder = folder_ / "cache", .identity = identity, .name = "data"};
    cache.least_bytes = 1;
    return cached_line_index(find({"a"}), how, cache)->rows();
  };
  EXPECT_EQ(rows("x"), 2);
  EXPECT_EQ(checked, 2);
  EXPECT_EQ(rows("x"), 2);
  EXPECT_EQ(checked, 2);
  EXPECT_EQ(rows("y"), 2);
  EXPECT_EQ(checked, 4);
  write(folder_ / "a", "1\n2\n3\n");
  EXPECT_EQ(rows("x"), 3);
  EXPECT_EQ(checked, 7);
  for (const auto& one : std::filesystem::directory_iterator(folder_ / "cache")) {
    write(one.path().string(), "damaged");
  }
  EXPECT_EQ(rows("x"), 3);
  EXPECT_EQ(checked, 10);
}

TEST_F(LineFilesTest, FolderThatCannotBeWritten_MakesTheIndexEachTime) {
  write(folder_ / "a", "1\n2\n");
  write(folder_ / "file", "");
  LineIndexCache cache{.folder = folder_ / "file/cache", .identity = "x", .name = "data"};
  cache.least_bytes = 1;
  EXPECT_EQ(cached_line_index(find({"a"}), options(), cache)->rows(), 2);
}

TEST_F(LineFilesTest, EmptyFiles_AreNamed) {
  write(folder_ / "a", "");
  write(folder_ / "b", "\n\n");
  write(folder_ / "c", "1\n");
  EXPECT_THAT(index({"a", "b", "c"}).files_without_rows(),
              ElementsAre(folder_ / "a", folder_ / "b"));
}

TEST_F(LineFilesTest, FileThatBecameShorter_IsAnError) {
  write(folder_ / "a", "1\n2\n3\n");
  const LineIndex lines = index({"a"});
  std::filesystem::resize_file(folder_ / "a", 2);
  std::string scratch;
  EXPECT_THAT(thrown_by([&] { lines.read(2, &scratch); }), IsError(ErrorCode::kIo, folder_ / "a"));
}

TEST_F(LineFilesTest, ManyFiles_AreOpenedForEachRead) {
  std::filesystem::create_directories(folder_ / "f");
  for (int i = 1000; i < 1300; ++i) {
    write(folder_ / ("f/" + std::to_string(i)), std::to_string(i) + "\n");
  }
  const std::vector<std::string> lines = lines_of({"f"});
  ASSERT_EQ(lines.size(), 300u);
  EXPECT_EQ(lines[299], "1299");
}

}  // namespace
}  // namespace fleet::data
