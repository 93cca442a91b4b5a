// WebDataset shards (data.source tar).
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "data/tar_files.h"
#include "tests/captured_log.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using testing::settings_of;

class Tar : public ::testing::Test {
 protected:
  // Writes samples [from, to) into a tar file, by the tar program.
  void shard(const std::string& name, int from, int to, const std::string& options = "--format=pax",
             const std::string& folder = "a/b") {
    const std::string in = root_ / "members";
    fs::remove_all(in);
    fs::create_directories(in + "/" + folder);
    std::string files;
    for (int i = from; i < to; ++i) {
      const std::string key = folder + "/" + std::to_string(1000 + i);
      testing::write(in + "/" + key + ".jpg", testing::jpeg_picture(40 + i % 7, 50 - i % 5, i));
      testing::write(in + "/" + key + ".cls", std::to_string(i % 4) + "\n");
      testing::write(in + "/" + key + ".txt", "a caption");
      files += " " + key + ".cls " + key + ".jpg " + key + ".txt";
    }
    const std::string command =
        "tar -cf '" + (root_ / name) + "' " + options + " -C '" + in + "'" + files;
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  std::vector<TarMember> members_of(const std::string& name) const {
    std::vector<TarMember> members;
    for_each_tar_member(root_ / name, [&](const TarMember& member) { members.push_back(member); });
    return members;
  }
  std::string content(const std::string& name) const { return read_file(root_ / name); }
  TarLayout layout_of(const std::string& name) const {
    return for_each_tar_member(root_ / name, [](const TarMember&) {});
  }
  // A tar file of single files of a folder, in this order.
  void tar_of(const std::string& name, const std::string& members) const {
    const std::string command =
        "tar -cf '" + (root_ / name) + "' --format=ustar -C '" + (root_ / "m") + "' " + members;
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  Settings settings(const std::string& shards, const std::string& more = "") const {
    return settings_of("tar", R"({"root": ")" + root_.path() +
                                  R"(", "image": {"channels": 3, "height": 24, "width": 20},
        "augment": {"random_resized_crop": true}, "train": {"shards": )" +
                                  shards + "}" + more + "}");
  }
  std::unique_ptr<Source> open(const std::string& shards,
                               const PipelineContext& context = {}) const {
    return open_split(settings(shards), true, true, context);
  }
  std::string failure(const std::string& shards, const PipelineContext& context = {}) const {
    return message_of([&] { open(shards, context); });
  }

  testing::TempFolder root_;
};

TEST_F(Tar, Shards_HaveAllSamplesInOrder) {
  shard("train-000.tar", 0, 5);
  shard("train-001.tar", 5, 9, "--format=ustar");
  shard("train-002.tar", 9, 12, "--format=gnu");
  for (const std::string shards : {R"(["train-{000..002}.tar"])", R"(["train-*.tar"])",
                                   R"(["train-{000,001}.tar", "train-002.tar"])"}) {
    const auto source = open(shards);
    ASSERT_EQ(source->size(), 12) << shards;
    std::vector<uint8_t> scratch;
    for (int i = 0; i < 12; ++i) {
      EXPECT_EQ(source->label(i), i % 4);
      const Sample sample = source->read(i, scratch);
      const std::string wanted = testing::jpeg_picture(40 + i % 7, 50 - i % 5, i);
      EXPECT_EQ(std::string(sample.bytes.begin(), sample.bytes.end()), wanted);
    }
    EXPECT_THAT(source->name(9), ::testing::EndsWith("train-002.tar:a/b/1009.jpg"));
  }
  auto pipeline = make_pipeline(settings(R"(["train-*.tar"])", R"(, "batch_size": 4)"), true, {});
  pipeline->start_epoch(0);
  EXPECT_EQ(testing::rest_of(*pipeline).size(), 3u);
}

TEST_F(Tar, LongNames_AreRead) {
  const std::string folder = std::string(90, 'x') + "/" + std::string(120, 'y');
  for (const std::string format : {"pax", "gnu"}) {
    shard("long.tar", 0, 2, "--format=" + format, folder);
    const auto source = open(R"(["long.tar"])");
    EXPECT_EQ(source->size(), 2);
    EXPECT_THAT(source->name(1), ::testing::EndsWith(":" + folder + "/1001.jpg"));
  }
}

TEST_F(Tar, LabelInJson_Counts) {
  fs::create_directories(root_ / "m");
  testing::write(root_ / "m/7.jpg", testing::jpeg_picture(30, 30, 1));
  testing::write(root_ / "m/7.json", R"({"label": 3, "caption": "a cat"})");
  ASSERT_EQ(
      std::system(
          ("tar -cf '" + (root_ / "j.tar") + "' -C '" + (root_ / "m") + "' 7.jpg 7.json").c_str()),
      0);
  EXPECT_EQ(open(R"(["j.tar"])")->label(0), 3);
}

TEST_F(Tar, FolderWithCharactersOfPatterns_StandsForItself) {
  fs::create_directories(root_ / "set[2012]{v2}");
  shard("set[2012]{v2}/a-0.tar", 0, 1);
  const std::string root = root_ / "set[2012]{v2}";
  EXPECT_THAT(shard_names("a-{0..0}.tar", root), ElementsAre(root + "/a-0.tar"));
  EXPECT_THAT(shard_names("a-*.tar", root), ElementsAre(root + "/a-0.tar"));
}

TEST_F(Tar, OtherPicturesOfASample_DoNotReplaceItsImage) {
  const std::string picture = testing::jpeg_picture(30, 30, 1);
  fs::create_directories(root_ / "m");
  testing::write(root_ / "m/7.jpg", picture);
  testing::write(root_ / "m/._7.jpg", "what macOS stores about a file");
  testing::write(root_ / "m/7.seg.jpg", testing::jpeg_picture(30, 30, 2));
  testing::write(root_ / "m/7.png", "a second one");
  testing::write(root_ / "m/7.cls", "3");
  const std::string command = "tar -cf '" + (root_ / "s.tar") + "' -C '" + (root_ / "m") + "' ";
  ASSERT_EQ(std::system((command + "7.jpg ._7.jpg 7.seg.jpg 7.png 7.cls").c_str()), 0);
  const auto source = open(R"(["s.tar"])");
  ASSERT_EQ(source->size(), 1);
  EXPECT_EQ(source->label(0), 3);
  std::vector<uint8_t> scratch;
  const Sample sample = source->read(0, scratch);
  EXPECT_EQ(std::string(sample.bytes.begin(), sample.bytes.end()), picture);
}

TEST_F(Tar, FoldersOfSystemsAndHiddenOnes_AreLeftOutAndCounted) {
  std::string members;
  for (const std::string folder : {"./a/", "__MACOSX/a/", "a/@eaDir/1.jpg/", "a/.hidden/"}) {
    testing::write(root_ / ("m/" + folder + "1.jpg"), testing::jpeg_picture(30, 30, 1));
    testing::write(root_ / ("m/" + folder + "1.cls"), "2");
    members += " " + folder + "1.jpg " + folder + "1.cls";
  }
  testing::write(root_ / "m/__MACOSX/a/._2.jpg", "without a class");
  const std::string tar = "tar -C '" + (root_ / "m") + "' -cf '";
  ASSERT_EQ(std::system((tar + (root_ / "s.tar") + "'" + members + " __MACOSX/a/._2.jpg").c_str()),
            0);
  std::unique_ptr<Source> source;
  EXPECT_THAT(captured_log([&] { source = open_split(settings(R"(["s.tar"])"), true, true, {}); }),
              AllOf(HasSubstr("4 images"), HasSubstr("s.tar:__MACOSX/a/1.jpg")));
  EXPECT_EQ(source->size(), 1);
  EXPECT_THAT(source->name(0), ::testing::EndsWith("a/1.jpg"));
  ASSERT_EQ(std::system((tar + (root_ / "only.tar") + "' a/.hidden/1.jpg a/.hidden/1.cls").c_str()),
            0);
  EXPECT_THAT(failure(R"(["only.tar"])"), HasSubstr("only.tar:a/.hidden/1.jpg"));
}

TEST_F(Tar, WhatCannotBeUsed_IsNamed) {
  shard("good.tar", 0, 3);
  EXPECT_THAT(failure(R"(["good.tar"])", {.classes = 2}), HasSubstr("good.tar:a/b/1002.jpg"));
  EXPECT_THAT(failure(R"(["none-*.tar"])"), HasSubstr("no file matches"));
  EXPECT_THAT(failure(R"(["good.tar", "gone.tar"])"), HasSubstr("gone.tar"));
  EXPECT_THAT(failure(R"(["x{3..1}.tar"])"), HasSubstr("not a range"));
  testing::write(root_ / "text.tar", std::string(2000, 'x'));
  EXPECT_THAT(failure(R"(["text.tar"])"), AllOf(HasSubstr("text.tar"), HasSubstr("no tar file")));
  testing::write(root_ / "z.tar", testing::gzip(std::string(5000, 'x')) + std::string(600, 'x'));
  EXPECT_THAT(failure(R"(["z.tar"])"), HasSubstr("compressed"));
  fs::copy_file(root_ / "good.tar", root_ / "cut.tar");
  fs::resize_file(root_ / "cut.tar", members_of("good.tar")[4].offset + 1);
  EXPECT_THAT(failure(R"(["cut.tar"])"), AllOf(HasSubstr("cut.tar"), HasSubstr("ends early")));
}

// As `cat a.tar b.tar` writes it; both number their samples from the same key on.
TEST_F(Tar, JoinedArchives_AreReadWhole) {
  shard("a.tar", 0, 3, "--format=ustar");
  shard("b.tar", 3, 7);
  testing::write(root_ / "ab.tar", content("a.tar") + content("b.tar") + content("a.tar"));
  const std::string log = captured_log([&] {
    const auto source = open(R"(["ab.tar"])");
    ASSERT_EQ(source->size(), 10);
    std::vector<uint8_t> scratch;
    for (int i = 0; i < 10; ++i) {
      const int made_from = i % 7;
      EXPECT_EQ(source->label(i), made_from % 4);
      const Sample sample = source->read(i, scratch);
      EXPECT_EQ(std::string(sample.bytes.begin(), sample.bytes.end()),
                testing::jpeg_picture(40 + made_from % 7, 50 - made_from % 5, made_from));
    }
  });
  EXPECT_THAT(log, HasSubstr("ab.tar"));
  EXPECT_EQ(layout_of("ab.tar").archives, 3);
}

// The last sample of one and the first of the next have the same name.
TEST_F(Tar, SameKeyInJoinedArchives_IsTwoSamples) {
  shard("one.tar", 0, 1);
  testing::write(root_ / "same.tar", content("one.tar") + content("one.tar"));
  EXPECT_EQ(open(R"(["same.tar"])")->size(), 2);
  fs::create_directories(root_ / "m");
  testing::write(root_ / "m/7.jpg", testing::jpeg_picture(30, 30, 1));
  testing::write(root_ / "m/7.cls", "3");
  tar_of("appended.tar", "7.jpg 7.cls 7.jpg 7.cls --hard-dereference");
  EXPECT_EQ(open(R"(["appended.tar"])")->size(), 2);
}

TEST_F(Tar, EndAtAMember_IsRead) {
  shard("whole.tar", 0, 3, "--format=ustar");
  const TarMember last = members_of("whole.tar").back();
  const uint64_t padded = (last.offset + last.size + 511) / 512 * 512;
  // With all zeros of a record, with one block of them, without any, without the member's padding.
  for (const uint64_t size : {padded + 10240, padded + 512, padded, last.offset + last.size}) {
    fs::copy_file(root_ / "whole.tar", root_ / "end.tar", fs::copy_options::overwrite_existing);
    fs::resize_file(root_ / "end.tar", size);
    EXPECT_EQ(open(R"(["end.tar"])")->size(), 3) << size;
    EXPECT_EQ(layout_of("end.tar").has_end_mark, size > padded) << size;
  }
}

TEST_F(Tar, EndWithinAMember_IsAnError) {
  shard("good.tar", 0, 2);  // pax: a header of its own describes each member
  const std::string whole = content("good.tar");
  const TarMember member = members_of("good.tar")[4];
  const uint64_t header = member.offset - 512;
  for (const uint64_t size : {member.offset + 1, member.offset, header + 300, header}) {
    testing::write(root_ / "cut.tar", whole.substr(0, size));
    EXPECT_THAT(thrown_by([&] { open(R"(["cut.tar"])"); }),
                IsError(ErrorCode::kIo, root_ / "cut.tar"))
        << size - header;
    testing::write(root_ / "cut.tar", whole + whole.substr(0, size));
    EXPECT_THAT(thrown_by([&] { open(R"(["cut.tar"])"); }),
                IsError(ErrorCode::kIo, root_ / "cut.tar"))
        << size - header << " of the second";
  }
  testing::write(root_ / "empty.tar", "");
  EXPECT_THAT(thrown_by([&] { open(R"(["empty.tar"])"); }),
              IsError(ErrorCode::kIo, root_ / "empty.tar"));
}

TEST_F(Tar, OtherBytesAfterTheEndMark_AreCountedInAWarning) {
  shard("g.tar", 0, 2);
  const std::string whole = content("g.tar");
  for (const size_t bytes : {1u, 700u, 5000u}) {
    testing::write(root_ / "g.tar", whole + std::string(bytes, 'x'));
    const std::string log = captured_log([&] { EXPECT_EQ(open(R"(["g.tar"])")->size(), 2); });
    EXPECT_THAT(log, AllOf(HasSubstr("g.tar"), HasSubstr(" " + std::to_string(bytes) + " ")));
    EXPECT_EQ(layout_of("g.tar").ignored_bytes, bytes);
    EXPECT_EQ(layout_of("g.tar").ignored_at, whole.size());
  }
}

// Half of the samples would be missing.
TEST_F(Tar, DamagedHeaderOfAJoinedArchive_IsDamage) {
  shard("a.tar", 0, 2, "--format=ustar");
  std::string both = content("a.tar") + content("a.tar");
  both[content("a.tar").size() + 3] = '!';
  testing::write(root_ / "both.tar", both);
  EXPECT_THAT(thrown_by([&] { open(R"(["both.tar"])"); }),
              IsError(ErrorCode::kIo, root_ / "both.tar"));
}

TEST_F(Tar, ClassAtAnotherPlace_IsNamedAsThat) {
  fs::create_directories(root_ / "m");
  for (const std::string key : {"7", "8"}) {
    testing::write(root_ / ("m/" + key + ".jpg"), testing::jpeg_picture(30, 30, 1));
    testing::write(root_ / ("m/" + key + ".cls"), "3");
  }
  for (const std::string order : {"7.jpg 8.jpg 7.cls 8.cls", "7.cls 8.cls 7.jpg 8.jpg"}) {
    tar_of("apart.tar", order);
    const Error error = thrown_by([&] { open(R"(["apart.tar"])"); });
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.next(), AllOf(HasSubstr("7.cls"), HasSubstr("--sort=name")));
  }
}

TEST_F(Tar, SampleWithoutClass_IsNamed) {
  fs::create_directories(root_ / "m");
  testing::write(root_ / "m/7.jpg", testing::jpeg_picture(30, 30, 1));
  ASSERT_EQ(
      std::system(("tar -cf '" + (root_ / "n.tar") + "' -C '" + (root_ / "m") + "' 7.jpg").c_str()),
      0);
  EXPECT_THAT(failure(R"(["n.tar"])"), AllOf(HasSubstr("n.tar:7.jpg"), HasSubstr("7.cls")));
}

TEST_F(Tar, ByteOfAHeaderChanged_IsDamageAtItsPlace) {
  shard("d.tar", 0, 2, "--format=ustar");
  const std::vector<TarMember> members = members_of("d.tar");
  ASSERT_EQ(members.size(), 6u);
  std::fstream file(root_ / "d.tar", std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(members[3].offset) - 512 + 3);
  file.put('!');
  file.close();
  EXPECT_THAT(failure(R"(["d.tar"])"),
              HasSubstr("damaged at byte " + std::to_string(members[3].offset - 512)));
}

// A header for all members, "g", whose size leads back to its own start.
TEST_F(Tar, SizeThatOverflows_IsRefused) {
  std::string block(512, '\0');
  block.replace(0, 1, "x");
  block[124] = '\x80';
  block.replace(128, 8, "\xff\xff\xff\xff\xff\xff\xfe\x00", 8);
  block[156] = 'g';
  block.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  char text[9];
  std::snprintf(text, sizeof text, "%06o", sum);
  block.replace(148, 7, text, 7);
  testing::write(root_ / "g.tar", block + std::string(1024, '\0'));
  EXPECT_THROW(for_each_tar_member(root_ / "g.tar", [](const TarMember&) {}), Error);
}

TEST(ShardNames, BracesExpand) {
  EXPECT_THAT(shard_names("t-{08..11}.tar"),
              ElementsAre("t-08.tar", "t-09.tar", "t-10.tar", "t-11.tar"));
  EXPECT_THAT(shard_names("{a,b}-{0..1}"), ElementsAre("a-0", "a-1", "b-0", "b-1"));
  EXPECT_THAT(thrown_by([] { shard_names("a{1"); }), IsUsageError("a{1"));
  const std::string many = "{0..99999}{0..99999}";
  EXPECT_THAT(thrown_by([&] { shard_names(many); }), IsUsageError(many));
}

}  // namespace
}  // namespace fleet::data
