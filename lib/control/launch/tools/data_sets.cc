#include "launch/tools/data_sets.h"

#include <cctype>
#include <cstdint>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text_file.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

// The four files of MNIST and of sets made like it.
std::vector<DataFile> idx_files(const std::string& base, const std::vector<int64_t>& bytes,
                                const std::vector<std::string>& sha256) {
  const std::vector<std::string> names = {"train-images-idx3-ubyte.gz",
                                          "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
                                          "t10k-labels-idx1-ubyte.gz"};
  std::vector<DataFile> files;
  for (size_t i = 0; i < names.size(); ++i) {
    files.push_back({names[i], base + names[i], bytes[i], sha256[i]});
  }
  return files;
}

constexpr char kIdx[] = "data.source=idx";

// Refuses what no download could match.
void check_file(DataFile* file, const std::string& list) {
  const auto wrong = [&](const std::string& what, const char* next) { refuse(what, list, next); };
  if (file->name.empty() || file->name.starts_with('.') ||
      file->name.find('/') != file->name.npos) {
    wrong("'" + file->name + "' is not a file name", "write names without folders");
  }
  for (char& digit : file->sha256) digit = static_cast<char>(std::tolower(digit));
  const bool hexadecimal = file->sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (file->sha256.size() != 64 || !hexadecimal) {
    wrong("the sha256 of " + file->name + " does not have 64 hexadecimal digits",
          "write what sha256sum prints");
  }
  if (file->bytes <= 0) wrong("the bytes of " + file->name + " are missing", "write its size");
}

constexpr size_t kPlane = size_t{32} * 32;

// Magic number (unsigned bytes, number of dimensions) and dimensions, big-endian.
std::string idx_head(const std::vector<uint32_t>& dimensions) {
  std::string head = {0, 0, 8, static_cast<char>(dimensions.size())};
  for (const uint32_t size : dimensions) {
    for (const int shift : {24, 16, 8, 0}) head += static_cast<char>(size >> shift & 255);
  }
  return head;
}

}  // namespace

const std::vector<DataSet>& known_data_sets() {
  static const std::vector<DataSet> sets = {
      {"mnist", "70,000 handwritten digits, 28x28, 10 classes",
       idx_files("https://ossci-datasets.s3.amazonaws.com/mnist/", {9912422, 28881, 1648877, 4542},
                 {"440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                  "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                  "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                  "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}),
       DataUnpacking::kNone, "", kIdx},
      {"fashion_mnist", "70,000 pieces of clothing, 28x28, 10 classes",
       idx_files("https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/"
                 "fashion/",
                 {26421880, 29515, 4422102, 5148},
                 {"3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                  "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                  "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                  "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}),
       DataUnpacking::kNone, "", kIdx},
      {"cifar10",
       "60,000 photographs, 32x32, 10 classes",
       {{"cifar-10-binary.tar.gz", "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
         170052171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}},
       DataUnpacking::kCifar10,
       "",
       kIdx},
      {"cifar100",
       "60,000 photographs, 32x32, 100 classes",
       {{"cifar-100-binary.tar.gz", "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
         168513733, "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"}},
       DataUnpacking::kCifar100,
       "",
       kIdx},
      {"imagenette160",
       "13,394 photographs of ImageNet, shorter side 160, 10 classes",
       {{"imagenette2-160.tgz", "https://s3.amazonaws.com/fast-ai-imageclas/imagenette2-160.tgz",
         99003388, "64d0c4859f35a461889e0147755a999a48b49bf38a7e0f9bd27003f10db02fe5"}},
       DataUnpacking::kTar,
       "imagenette2-160",
       "data.source=image_folder --set data.test.folder=val --set data.image.height=128 "
       "--set data.image.width=128 --set data.augment.random_resized_crop=true "
       "--set data.eval.resize=146"},
  };
  return sets;
}

std::vector<DataSet> read_data_sets(const std::string& path) {
  constexpr int64_t kMost = int64_t{1} << 24;
  try {
    const auto json = Json::parse(read_text_file(path, kMost));
    std::vector<DataSet> sets;
    for (const auto& [name, one] : json.items()) {
      DataSet set{.name = name, .about = one.value("about", std::string()), .files = {}};
      for (const auto& file : one.at("files")) {
        set.files.push_back({file.at("name").get<std::string>(), file.at("url").get<std::string>(),
                             file.at("bytes").get<int64_t>(),
                             file.at("sha256").get<std::string>()});
        check_file(&set.files.back(), path);
      }
      if (one.value("unpack", false)) set.unpacking = DataUnpacking::kTar;
      sets.push_back(std::move(set));
    }
    return sets;
  } catch (const JsonError& error) {
    refuse(std::string("not a list of data sets: ") + error.what(), path,
           "docs/how-to/get_data.md shows one");
  }
}

void cifar_to_idx(const std::vector<std::string>& parts, int labels, const std::string& images,
                  const std::string& label_file) {
  std::string pixels, classes;
  const size_t record = labels + 3 * kPlane;
  for (const std::string& part : parts) {
    const std::string bytes = read_file(part);
    if (bytes.empty() || bytes.size() % record != 0) {
      throw Error(ErrorCode::kIo, "it does not hold whole images", part, "get the data set again");
    }
    for (size_t at = 0; at < bytes.size(); at += record) {
      classes += bytes[at + labels - 1];
      const size_t first = at + labels;
      for (size_t i = 0; i < kPlane; ++i) {
        for (size_t c = 0; c < 3; ++c) pixels += bytes[first + c * kPlane + i];
      }
    }
  }
  const auto count = static_cast<uint32_t>(classes.size());
  write_file_atomically(images, idx_head({count, 32, 32, 3}) + pixels);
  write_file_atomically(label_file, idx_head({count}) + classes);
}

}  // namespace fleet
