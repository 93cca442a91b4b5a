#include "data/source.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/error.h"
#include "data/image_files.h"
#include "tests/captured_log.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using testing::gzip;
using ::testing::HasSubstr;
using testing::idx_of;
using testing::TempFolder;

std::unique_ptr<Source> open(const std::string& name, const std::string& json,
                             const SourceContext& context) {
  const SourceType& type = sources().get(name);
  const Settings split =
      ConfigTree::from_json(json, "job.json").validate(type.schema(context.train));
  return type.open(split, context);
}

SourceContext in(const TempFolder& folder, int64_t classes = 0) {
  SourceContext context;
  context.root = folder.path();
  context.classes = classes;
  return context;
}

const char* kIdx = R"({"images": "images", "labels": "labels"})";
const std::vector<uint8_t> kPixels{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

TEST(IdxSource, PlainAndGzip_ReadAlike) {
  for (const bool zipped : {false, true}) {
    TempFolder folder;
    const std::string images = idx_of({2, 2, 3}, kPixels), labels = idx_of({2}, {7, 4});
    testing::write(folder / "images", zipped ? gzip(images) : images);
    testing::write(folder / "labels", zipped ? gzip(labels) : labels);
    const auto source = open("idx", kIdx, in(folder, 8));
    ASSERT_EQ(source->size(), 2);
    EXPECT_EQ(source->label(0), 7);
    EXPECT_EQ(source->label(1), 4);
    std::vector<uint8_t> scratch;
    const Sample sample = source->read(1, scratch);
    EXPECT_FALSE(sample.encoded);
    EXPECT_EQ(sample.height, 2);
    EXPECT_EQ(sample.width, 3);
    EXPECT_EQ(sample.channels, 1);
    EXPECT_THAT(sample.bytes, ElementsAre(6, 7, 8, 9, 10, 11));
    EXPECT_THAT(source->name(1), EndsWith("images[1]"));
  }
}

TEST(IdxSource, FileWithOrWithoutGz_IsFound) {
  TempFolder folder;
  testing::write(folder / "images.gz", gzip(idx_of({1, 1, 1}, {5})));
  testing::write(folder / "labels", idx_of({1}, {0}));
  EXPECT_NE(open("idx", R"({"images": "images", "labels": "labels.gz"})", in(folder)), nullptr);
}

TEST(IdxSource, ColourImages_HaveChannelsLast) {
  TempFolder folder;
  testing::write(folder / "images", idx_of({1, 2, 2, 3}, kPixels));
  testing::write(folder / "labels", idx_of({1}, {0}));
  std::vector<uint8_t> scratch;
  EXPECT_EQ(open("idx", kIdx, in(folder))->read(0, scratch).channels, 3);
}

TEST(IdxSource, BadFiles_AreNamed) {
  TempFolder folder;
  const auto error = [&](const std::string& images, const std::string& labels, int classes = 0) {
    testing::write(folder / "images", images);
    testing::write(folder / "labels", labels);
    return thrown_by([&] { open("idx", kIdx, in(folder, classes)); });
  };
  const std::string good = idx_of({2, 2, 3}, kPixels), labels = idx_of({2}, {7, 4});
  const std::string images_file = folder / "images", labels_file = folder / "labels";
  EXPECT_THAT(thrown_by([&] { open("idx", kIdx, in(folder)); }), IsUsageError(images_file));
  EXPECT_THAT(error("hello, world", labels), IsUsageError(images_file));
  EXPECT_THAT(error(good.substr(0, 20), labels), IsUsageError(images_file));
  EXPECT_THAT(error(gzip(good).substr(0, 30), labels), IsUsageError(images_file));
  EXPECT_THAT(error(labels, labels), IsUsageError(images_file));
  EXPECT_THAT(error(gzip(good + "x"), labels), IsUsageError(images_file));
  EXPECT_THAT(error(good, labels + "x"), IsUsageError(labels_file));
  EXPECT_THAT(error(good + "x", labels).failure(), HasSubstr("(2 x 2 x 3"));
  std::string floats = good;
  floats[2] = 0x0d;
  EXPECT_THAT(error(floats, labels).failure(), HasSubstr("of unsigned bytes, but of floats"));
  EXPECT_THAT(error(idx_of({-1, -1, -1}, {}), labels), IsUsageError(images_file));
  EXPECT_THAT(error(good, idx_of({3}, {1, 2, 3})),
              IsUsageError(images_file + " and " + labels_file));
  const Error out_of_range = error(good, labels, 7);
  EXPECT_THAT(out_of_range, IsUsageError(labels_file + "[0]"));
  EXPECT_EQ(out_of_range.failure(), "the label 7 is out of range");
  EXPECT_THAT(out_of_range.next(), HasSubstr("labels go from 0 to 6"));
}

TEST(ImageListSource, Lines_GivePathsAndLabels) {
  TempFolder folder;
  testing::write(folder / "sub/a b.jpg", "A");
  testing::write(folder / "c.png", "CC");
  testing::write(folder / "list.txt", "sub/a b.jpg 3\n\n" + (folder / "c.png") + "\t0\r\n");
  for (const std::string& root : {folder.path(), std::string()}) {
    SourceContext context = in(folder);
    context.root = root;
    const auto source =
        open("image_list", R"({"list": ")" + (folder / "list.txt") + "\"}", context);
    ASSERT_EQ(source->size(), 2);
    EXPECT_EQ(source->label(0), 3);
    EXPECT_EQ(source->label(1), 0);
    EXPECT_EQ(source->name(0), folder / "sub/a b.jpg");
    std::vector<uint8_t> scratch;
    EXPECT_EQ(source->read(1, scratch).bytes.size(), 2u);
    EXPECT_EQ(source->read(0, scratch).bytes.size(), 1u) << "the scratch is larger than the file";
  }
}

TEST(ImageListSource, LabelThatTheLossLeavesOut_NeedBeNoClass) {
  TempFolder folder;
  testing::write(folder / "a.jpg", "A");
  testing::write(folder / "list.txt", "a.jpg 255\na.jpg 9\n");
  SourceContext context = in(folder, 10);
  const auto open_list = [&] { return open("image_list", R"({"list": "list.txt"})", context); };
  EXPECT_THAT(thrown_by([&] { open_list(); }), IsUsageError(folder / "list.txt:1"));
  context.ignored_label = 255;
  EXPECT_EQ(open_list()->label(0), 255);
}

TEST(ImageListSource, BadLines_AreNamedByFileAndLine) {
  TempFolder folder;
  testing::write(folder / "a.jpg", "A");
  const auto error = [&](const std::string& line) {
    testing::write(folder / "list.txt", "a.jpg 0\n" + line + "\n");
    return thrown_by([&] { open("image_list", R"({"list": "list.txt"})", in(folder, 10)); });
  };
  const std::string second_line = folder / "list.txt:2";
  EXPECT_EQ(error("a.jpg").failure(), "'a.jpg' is not \"path label\"");
  for (const char* line : {"a.jpg", "a.jpg seven", "a.jpg 10", "a.jpg -1", "b.jpg 1"}) {
    EXPECT_THAT(error(line), IsUsageError(second_line)) << line;
  }
  testing::write(folder / "list.txt", "\n\n");
  EXPECT_THAT(thrown_by([&] { open("image_list", R"({"list": "list.txt"})", in(folder)); }),
              IsUsageError(folder / "list.txt"));
  EXPECT_THAT(thrown_by([&] { open("image_list", R"({"list": "lost.txt"})", in(folder)); }),
              AllOf(IsUsageError("lost.txt"), Advises(HasSubstr("set data.train.list"))));
}

// As Excel and Notepad save it.
TEST(ImageListSource, ListOfWindows_IsRead) {
  TempFolder folder;
  for (const char* name : {"a.jpg", "b.jpg"}) testing::write(folder / name, "x");
  testing::write(folder / "list.txt",
                 "\xEF\xBB\xBF"
                 "a.jpg 0\r\nb.jpg 1\r\n");
  const auto source = open("image_list", R"({"list": "list.txt"})", in(folder));
  ASSERT_EQ(source->size(), 2);
  EXPECT_EQ(source->name(0), folder / "a.jpg");
  EXPECT_EQ(image_paths({folder / "list.txt"})[0], folder / "a.jpg");
  testing::write(folder / "list.txt", std::string("\xFF\xFE"
                                                  "a\0 \0"
                                                  "0\0\n\0",
                                                  10));
  const Error error = thrown_by([&] { open("image_list", R"({"list": "list.txt"})", in(folder)); });
  EXPECT_THAT(error, IsUsageError(folder / "list.txt"));
  EXPECT_THAT(error.failure(), HasSubstr("UTF-16"));
}

TEST(ImageListSource, LinesIntoFoldersOfSystems_AreLeftOutAndCounted) {
  TempFolder folder;
  std::string list =
      "./a/1.jpg 0\n../" + folder.path().substr(folder.path().rfind('/') + 1) + "/a/2.jpg 1\n";
  for (const char* name : {"a/1.jpg", "a/2.jpg"}) testing::write(folder / name, "x");
  for (const std::string name :
       {"a/@eaDir/1.jpg", "__MACOSX/a/2.jpg", "a/.hidden/3.jpg", "a/._1.jpg"}) {
    testing::write(folder / name, "x");
    list += name + " 0\n" + (folder / name) + " 0\n";
  }
  testing::write(folder / "list.txt", list);
  std::unique_ptr<Source> source;
  EXPECT_THAT(
      captured_log([&] { source = open("image_list", R"({"list": "list.txt"})", in(folder)); }),
      AllOf(HasSubstr("8 images"), HasSubstr("a/@eaDir/1.jpg")));
  EXPECT_EQ(source->size(), 2);

  testing::write(folder / "list.txt", "a/.hidden/3.jpg 0\n");
  EXPECT_THAT(thrown_by([&] { open("image_list", R"({"list": "list.txt"})", in(folder)); }),
              AllOf(IsUsageError(folder / "list.txt"), Advises(HasSubstr("data.root"))));
  SourceContext context = in(folder);  // the user's choice
  context.root = folder / "a/.hidden";
  testing::write(folder / "a/.hidden/list.txt", "3.jpg 0\n");
  EXPECT_EQ(open("image_list", R"({"list": "list.txt"})", context)->size(), 1);
}

TEST(ImageListSource, FileThatVanished_IsAnErrorThatNamesIt) {
  TempFolder folder;
  testing::write(folder / "a.jpg", "A");
  testing::write(folder / "list.txt", "a.jpg 0\n");
  const auto source = open("image_list", R"({"list": "list.txt"})", in(folder));
  std::filesystem::remove(folder / "a.jpg");
  std::vector<uint8_t> scratch;
  EXPECT_THAT(thrown_by([&] { source->read(0, scratch); }),
              IsError(ErrorCode::kNotFound, folder / "a.jpg"));
}

TEST(ImageFolderSource, Classes_AreNumberedByName) {
  TempFolder folder;
  for (const char* file : {"train/dog/2.jpg", "train/dog/1.PNG", "train/cat/9.jpeg",
                           "train/dog/notes.txt", "train/cat/.hidden.jpg", "test/dog/5.jpg"}) {
    testing::write(folder / file, "x");
  }
  const auto source = open("image_folder", "{}", in(folder, 2));
  ASSERT_EQ(source->size(), 3);
  EXPECT_THAT(source->name(0), EndsWith("cat/9.jpeg"));
  EXPECT_THAT(source->name(1), EndsWith("dog/1.PNG"));
  EXPECT_EQ(source->label(0), 0);
  EXPECT_EQ(source->label(2), 1);
  EXPECT_THAT(source->class_names(), ElementsAre("cat", "dog"));

  // Test images of dogs alone are still class 1.
  SourceContext context = in(folder, 2);
  context.train = false;
  const Settings train = ConfigTree().validate(sources().get("image_folder").schema(true));
  context.train_split = &train;
  EXPECT_EQ(open("image_folder", "{}", context)->label(0), 1);
  testing::write(folder / "test/dogs/1.jpg", "x");
  EXPECT_THAT(thrown_by([&] { open("image_folder", "{}", context); }),
              AllOf(IsUsageError(folder / "test"), Advises("did you mean 'dog'?")));
}

// Only what is known not to exist is no test data: a file server may be away (ESTALE). A link to
// itself fails in the same way (ELOOP).
TEST(ImageFolderSource, TestFolderThatCannotBeExamined_IsNotTakenForNone) {
  TempFolder folder;
  testing::write(folder / "train/0/1.jpg", "x");
  SourceContext context = in(folder, 1);
  context.train = false;
  EXPECT_EQ(open("image_folder", "{}", context), nullptr);
  std::filesystem::create_symlink("test", folder / "test");
  EXPECT_EQ(thrown_by([&] { open("image_folder", "{}", context); }).code(), ErrorCode::kIo);
}

// torchvision.datasets.ImageFolder's order: folder by folder by path, within each by name.
TEST(ImageFolderSource, ImagesInFoldersBelow_AreTaken) {
  TempFolder folder;
  for (const char* file : {"train/a/z.jpg", "train/a/sub/2.jpg", "train/a/sub/1.jpg",
                           "train/a/sub/deep/0.png", "train/a/b/9.jpg", "train/b/1.jpg"}) {
    testing::write(folder / file, "x");
  }
  std::filesystem::create_directory_symlink(folder / "train/a", folder / "train/a/sub/round");
  const auto source = open("image_folder", "{}", in(folder));
  std::vector<std::string> names;
  for (int64_t i = 0; i < source->size(); ++i) {
    names.push_back(source->name(i).substr((folder / "train/").size()));
  }
  EXPECT_THAT(names, ElementsAre("a/z.jpg", "a/b/9.jpg", "a/sub/1.jpg", "a/sub/2.jpg",
                                 "a/sub/deep/0.png", "b/1.jpg"));
  EXPECT_EQ(source->label(4), 0);
  EXPECT_EQ(source->label(5), 1);
}

// The first name of a folder counts, in whatever order the disk lists them.
TEST(ImageFolderSource, FolderThatIsReachedTwice_HasItsFirstName) {
  TempFolder folder;
  for (int i = 10; i < 30; ++i) {
    const std::string name = folder / ("train/c/" + std::to_string(i));
    testing::write(name + "/1.jpg", "x");
    for (const char* other : {"link", "-link"}) {
      std::filesystem::create_directory_symlink(name, name + other);
    }
    std::filesystem::create_directory_symlink(name, folder / ("train/c/0" + std::to_string(i)));
  }
  const auto source = open("image_folder", "{}", in(folder));
  ASSERT_EQ(source->size(), 20);
  for (int64_t i = 0; i < source->size(); ++i) {
    EXPECT_THAT(source->name(i), HasSubstr("/c/0" + std::to_string(10 + i) + "/1.jpg"));
  }
}

TEST(ImageFolderSource, ClassWithoutImages_IsNamed) {
  TempFolder folder;
  testing::write(folder / "train/a/1.jpg", "x");
  testing::write(folder / "train/b/1.ppm", "x");
  testing::write(folder / "test/a/1.jpg", "x");
  testing::write(folder / "test/b/1.ppm", "x");
  EXPECT_THAT(thrown_by([&] { open("image_folder", "{}", in(folder)); }),
              IsUsageError(folder / "train"));
  SourceContext context = in(folder);  // classes may be missing in tests
  context.train = false;
  EXPECT_THAT(captured_log([&] { EXPECT_EQ(open("image_folder", "{}", context)->size(), 1); }),
              HasSubstr("without an image (.jpg, .jpeg, .png, .webp, .bmp, .gif, .tif, .tiff): b"));
}

TEST(ImageFolderSource, FilesLeftOut_AreSaid) {
  TempFolder folder;
  for (const char* file : {"train/a/1.jpg", "train/a/1.PPM", "train/a/2.ppm", "train/a/notes",
                           "train/b/1.jpg", "train/b/x.txt", "train/astray.jpg"}) {
    testing::write(folder / file, "x");
  }
  SourceContext context = in(folder);
  const std::string lines =
      captured_log([&] { EXPECT_EQ(open("image_folder", "{}", context)->size(), 2); });
  EXPECT_THAT(lines, HasSubstr("skipped: .ppm (2, "));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2) << "and files outside the folders";
  context.verbose = false;  // another rank says it
  EXPECT_EQ(captured_log([&] { open("image_folder", "{}", context); }), "");
}

// Thumbnails and recycle bins of a network storage, what archives of macOS hold, the folder of
// fsck, and hidden ones.
const std::vector<std::string>& ignored_folders() {
  static const std::vector<std::string> all{"@eaDir",
                                            "@eaDir/0001.jpg",
                                            "#recycle",
                                            "$RECYCLE.BIN",
                                            "$Recycle.Bin",
                                            "__MACOSX",
                                            "lost+found",
                                            ".hidden",
                                            ".ipynb_checkpoints",
                                            "@Recycle",
                                            ".@__thumb",
                                            ".Trash-1000/files",
                                            "System Volume Information"};
  return all;
}

TEST(ImageFolderSource, FoldersOfSystemsAndHiddenOnes_AreNoClassesAndNoSamples) {
  for (const std::string& name : ignored_folders()) {
    for (const std::string& within : {std::string(), std::string("a/"), std::string("a/sub/")}) {
      TempFolder folder;
      testing::write(folder / "train/a/1.jpg", "x");
      testing::write(folder / "train/b/1.jpg", "x");
      testing::write(folder / ("train/" + within + name + "/7.jpg"), "x");
      testing::write(folder / ("train/" + within + name + "/8.png"), "x");
      std::unique_ptr<Source> source;
      const std::string lines =
          captured_log([&] { source = open("image_folder", "{}", in(folder, 2)); });
      ASSERT_EQ(source->size(), 2) << within << name;
      EXPECT_THAT(source->class_names(), ElementsAre("a", "b"));
      EXPECT_THAT(lines, AllOf(HasSubstr(name.substr(0, name.find('/'))), HasSubstr("2 images")));
    }
  }
}

TEST(ImageFolderSource, FoldersOfSystemsWithoutImages_AreSaidOnce) {
  TempFolder folder;
  testing::write(folder / "train/a/1.jpg", "x");
  std::filesystem::create_directories(folder / "train/lost+found");
  std::filesystem::create_directories(folder / "train/.git");
  const std::string lines = captured_log([&] { open("image_folder", "{}", in(folder, 1)); });
  EXPECT_THAT(lines, HasSubstr("/train"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
}

// A folder of images may have any name itself.
TEST(ImageFolderSource, HiddenRoot_IsTheUsersChoice) {
  TempFolder folder;
  testing::write(folder / ".cache/__MACOSX/train/a/1.jpg", "x");
  SourceContext context = in(folder);
  context.root = folder / ".cache/__MACOSX";
  EXPECT_EQ(open("image_folder", "{}", context)->size(), 1);
}

// No error before training needs them, unless the user has named them.
TEST(ImageFolderSource, NoTestFolder_IsNoTestDataWithALine) {
  TempFolder folder;
  testing::write(folder / "train/a/1.jpg", "x");
  SourceContext context = in(folder);
  context.train = false;
  const auto lines_of = [&](const std::string& json) {
    return captured_log([&] { EXPECT_EQ(open("image_folder", json, context), nullptr); });
  };
  EXPECT_THAT(lines_of("{}"), AllOf(HasSubstr(folder / "test"), HasSubstr("data.test.folder"),
                                    HasSubstr("data.validation_split")));
  EXPECT_THAT(lines_of(R"({"folder": ""})"), HasSubstr("data.validation_split"));
  testing::write(folder / "val/a/1.jpg", "x");
  EXPECT_THAT(lines_of("{}"), HasSubstr(folder / "val"));
  EXPECT_THAT(thrown_by([&] { open("image_folder", R"({"folder": "tset"})", context); }),
              AllOf(IsUsageError(folder / "tset"),
                    Advises(AllOf(HasSubstr("data.test.folder"), HasSubstr(folder / "val"),
                                  HasSubstr("data.validation_split")))));
  testing::write(folder / "test", "not a folder");
  EXPECT_THAT(thrown_by([&] { open("image_folder", "{}", context); }),
              IsUsageError(folder / "test"));
  context.verbose = false;
  std::filesystem::remove(folder / "test");
  EXPECT_EQ(lines_of("{}"), "");
}

TEST(OtherSources, NoTestData_IsALine) {
  TempFolder folder;
  SourceContext context = in(folder);
  context.train = false;
  for (const auto& [source, key] :
       {std::pair("image_list", "data.test.list"), std::pair("tar", "data.test.shards"),
        std::pair("idx", "data.test.images")}) {
    EXPECT_THAT(captured_log([&] { EXPECT_EQ(open(source, "{}", context), nullptr); }),
                AllOf(HasSubstr(key), HasSubstr("data.validation_split")));
  }
  // One of two files, or a name that the user gave: a mistake.
  testing::write(folder / "t10k-labels-idx1-ubyte", idx_of({1}, {0}));
  EXPECT_THAT(thrown_by([&] { open("idx", "{}", context); }), IsUsageError());
  std::filesystem::remove(folder / "t10k-labels-idx1-ubyte");
  EXPECT_THAT(thrown_by([&] { open("idx", R"({"images": "images"})", context); }), IsUsageError());
}

TEST(ImageFolderSource, BadFolders_AreNamed) {
  TempFolder folder;
  const auto error = [&](int64_t classes = 0) {
    return thrown_by([&] { open("image_folder", "{}", in(folder, classes)); });
  };
  const std::string train = folder / "train";
  EXPECT_THAT(error(), IsUsageError(train));
  testing::write(folder / "train/readme", "x");
  EXPECT_THAT(error(), IsUsageError(train));
  testing::write(folder / "train/a/readme", "x");
  EXPECT_THAT(error(), IsUsageError(train));
  testing::write(folder / "train/a/1.jpg", "x");
  testing::write(folder / "train/b/1.jpg", "x");
  EXPECT_THAT(error(1).failure(), AllOf(HasSubstr("2 class folders"), HasSubstr("1 classes")));
  EXPECT_EQ(open("image_folder", "{}", in(folder, 2))->size(), 2);
}

TEST(ImageFolderSource, OneFolderTooMany_IsNamed) {
  TempFolder folder;
  for (const char* name : {"cat", "dog"}) {
    testing::write(folder / ("train/" + std::string(name) + "/1.jpg"), "x");
  }
  testing::write(folder / "train/notes/readme.txt", "x");
  const auto failure = [&] {
    return thrown_by([&] { open("image_folder", "{}", in(folder, 2)); }).failure();
  };
  EXPECT_THAT(failure(), AllOf(HasSubstr("notes"), ::testing::Not(HasSubstr("dog"))));
  testing::write(folder / "train/notes/1.jpg", "x");
  EXPECT_THAT(failure(), HasSubstr("cat, dog, notes"));
  for (const char* name : {"cat", "notes"}) {
    testing::write(folder / ("val/" + std::string(name) + "/1.jpg"), "x");
  }
  EXPECT_THAT(failure(), AllOf(HasSubstr("dog"), ::testing::Not(HasSubstr("cat, dog"))));
}

TEST(SyntheticSource, SeedAndSplit_DecideThePixels) {
  SourceContext context;
  context.channels = 3;
  context.height = 6;
  context.width = 5;
  context.seed = 11;
  const auto pixels = [&](int64_t index) {
    const auto source = open("synthetic", R"({"samples": 20, "classes": 4})", context);
    std::vector<uint8_t> scratch;
    const Sample sample = source->read(index, scratch);
    EXPECT_EQ(sample.bytes.size(), 90u);
    return std::vector<uint8_t>(sample.bytes.begin(), sample.bytes.end());
  };
  const auto first = pixels(0);
  EXPECT_EQ(first, pixels(0));
  EXPECT_NE(first, pixels(4)) << "the same class, other noise";
  context.seed = 12;
  EXPECT_NE(first, pixels(0));
  const auto source = open("synthetic", R"({"samples": 20, "classes": 4})", context);
  EXPECT_EQ(source->size(), 20);
  EXPECT_EQ(source->label(7), 3);
  context.classes = 3;
  EXPECT_THAT(thrown_by([&] { open("synthetic", R"({"classes": 4})", context); }),
              IsUsageError("data.train.classes"));
}

}  // namespace
}  // namespace fleet::data
