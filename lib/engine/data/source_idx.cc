// IDX files (yann.lecun.com/exdb/mnist), plain or gzip, read completely into memory.
#include <zlib.h>

#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "base/file_status.h"
#include "base/regular_file.h"
#include "base/terminal_text.h"
#include "data/source.h"
#include "data/storage.h"

namespace fleet::data {
namespace {

struct Idx {
  std::string path;
  std::vector<int64_t> dims;
  std::vector<uint8_t> bytes;
};

[[noreturn]] void bad_file(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::kUsage, what, path, "give an IDX file of unsigned bytes, plain or gzip");
}

// zlib also reads uncompressed files.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    RegularFile file = open_regular_file(path);
    size_ = file.size;
    file_ = gzdopen(file.fd.get(), "rb");
    if (!file_) throw Error(ErrorCode::kIo, "cannot be opened", path);
    file.fd.release();
    gzbuffer(file_, 1 << 18);
  }
  ~Reader() { gzclose(file_); }
  Reader(const Reader&) = delete;
  void read(uint8_t* to, size_t count) {
    while (count > 0) {
      const int got = gzread(file_, to, static_cast<unsigned>(std::min<size_t>(count, 1 << 30)));
      if (got < 0) cannot_read();
      if (got == 0) bad_file(path_, "the file is shorter than its header claims");
      to += got;
      count -= got;
    }
  }
  bool at_end() {
    uint8_t byte = 0;
    const int got = gzread(file_, &byte, 1);
    if (got < 0) cannot_read();
    return got == 0;
  }
  int64_t big_endian_32() {
    uint8_t b[4];
    read(b, 4);
    return (int64_t{b[0]} << 24) | (int64_t{b[1]} << 16) | (int64_t{b[2]} << 8) | int64_t{b[3]};
  }

  // Deflate expands a byte to at most 1032 bytes.
  bool can_hold(int64_t bytes) const { return bytes / 1032 <= size_; }

 private:
  [[noreturn]] void cannot_read() const {
    const int system = errno;
    int reason = Z_OK;
    gzerror(file_, &reason);
    if (reason == Z_ERRNO) throw SystemError(ErrorCode::kIo, "cannot read the file", system, path_);
    bad_file(path_, "damaged gzip data");
  }

  std::string path_;
  int64_t size_ = 0;
  gzFile file_ = nullptr;
};

// The path with .gz added or removed.
std::string other_form(const std::string& path) {
  return path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path + ".gz";
}

// The path itself, or its other form.
std::string existing(const std::string& path, const std::string& key) {
  namespace fs = std::filesystem;
  std::error_code ignored;  // such as a name that is too long
  if (fs::is_regular_file(path, ignored)) return path;
  check_answer(ignored.value(), path);
  const std::string other = other_form(path);
  if (fs::is_regular_file(other, ignored)) return other;
  check_answer(ignored.value(), other);
  if (fs::exists(path, ignored)) return path;  // opening it reports what it is
  throw Error(ErrorCode::kUsage, "the file does not exist", path, "set data.root or " + key);
}

// The element type of another IDX file, from its third byte.
std::string type_text(int64_t magic) {
  if (magic >> 16 != 0) return "";
  switch (magic >> 8) {
    case 0x09:
      return ", but of signed bytes";
    case 0x0b:
      return ", but of 16-bit integers";
    case 0x0c:
      return ", but of 32-bit integers";
    case 0x0d:
      return ", but of floats";
    case 0x0e:
      return ", but of doubles";
    default:
      return "";
  }
}

std::string sizes_text(const std::vector<int64_t>& dims) {
  std::string text;
  for (const int64_t dim : dims) text += (text.empty() ? "" : " x ") + std::to_string(dim);
  return text;
}

// Limits an image: a header may claim any size.
constexpr int64_t kLargestSide = 1 << 14;

Idx load(const std::string& path, size_t fewest_dims, size_t max_dims) {
  Reader reader(path);
  Idx idx{.path = path, .dims = {}, .bytes = {}};
  const int64_t magic = reader.big_endian_32();
  const size_t dims = magic & 0xff;
  if (magic >> 8 != 0x08) bad_file(path, "not an IDX file of unsigned bytes" + type_text(magic));
  if (dims < fewest_dims || dims > max_dims) {
    bad_file(path, "it has " + std::to_string(dims) + " dimensions instead of " +
                       std::to_string(fewest_dims));
  }
  int64_t count = 1;
  for (size_t i = 0; i < dims; ++i) {
    idx.dims.push_back(reader.big_endian_32());
    if (idx.dims.back() == 0) bad_file(path, "it is empty");
    if (i > 0 && idx.dims.back() > kLargestSide) bad_file(path, "its header claims too much");
    if (idx.dims.back() > (int64_t{1} << 40) / count) bad_file(path, "its header claims too much");
    count *= idx.dims.back();
  }
  if (!reader.can_hold(count)) bad_file(path, "the file is shorter than its header claims");
  // In steps, so that a header that claims too much results in a message and does not exhaust
  // memory.
  constexpr int64_t kStep = int64_t{1} << 26;
  for (int64_t done = 0; done < count; done += kStep) {
    const int64_t size = std::min(kStep, count - done);
    idx.bytes.resize(done + size);
    reader.read(idx.bytes.data() + done, size);
  }
  if (!reader.at_end()) {
    bad_file(path,
             "the file is longer than its header claims (" + sizes_text(idx.dims) + " bytes)");
  }
  return idx;
}

class IdxSource : public Source {
 public:
  IdxSource(Idx images, Idx labels) : images_(std::move(images)), labels_(std::move(labels)) {
    height_ = static_cast<int>(images_.dims[1]);
    width_ = static_cast<int>(images_.dims[2]);
    channels_ = images_.dims.size() > 3 ? static_cast<int>(images_.dims[3]) : 1;
  }
  int64_t size() const override { return images_.dims[0]; }
  int64_t label(int64_t index) const override { return labels_.bytes[index]; }
  Sample read(int64_t index, std::vector<uint8_t>&) const override {
    const size_t count = size_t(height_) * width_ * channels_;
    return {.bytes = {images_.bytes.data() + index * count, count},
            .encoded = false,
            .height = height_,
            .width = width_,
            .channels = channels_};
  }
  std::string name(int64_t index) const override {
    return shown_path(images_.path) + "[" + std::to_string(index) + "]";
  }

 private:
  Idx images_, labels_;
  int height_, width_, channels_;
};

std::unique_ptr<Source> open_idx(const Settings& split, const SourceContext& context) {
  const std::string where = context.train ? "data.train." : "data.test.";
  if (split.text("images").empty()) return no_test_data(context, where + "images");
  const auto path = [&](const std::string& key) {
    return under_root(context.root, split.text(key));
  };
  const auto is_missing = [&](const std::string& key) {
    return !split.given(key) && !path_exists(path(key)) && !path_exists(other_form(path(key)));
  };
  if (!context.train && is_missing("images") && is_missing("labels")) {
    return no_test_data(context, where + "images",
                        " (" + shown_path(path("images")) + " does not exist)");
  }
  Idx images = load(existing(path("images"), where + "images"), 3, 4);
  Idx labels = load(existing(path("labels"), where + "labels"), 1, 1);
  if (images.dims[0] != labels.dims[0]) {
    throw Error(ErrorCode::kUsage,
                std::to_string(images.dims[0]) + " images and " + std::to_string(labels.dims[0]) +
                    " labels",
                images.path + " and " + labels.path, "use files that belong together");
  }
  for (size_t i = 0; i < labels.bytes.size(); ++i) {
    if (context.classes > 0 && labels.bytes[i] >= context.classes) {
      check_label(labels.bytes[i], context, labels.path + "[" + std::to_string(i) + "]");
    }
  }
  return std::make_unique<IdxSource>(std::move(images), std::move(labels));
}

}  // namespace
FLEET_SOURCE(idx) {
  def.schema = [](bool train) {
    const std::string start = train ? "train" : "t10k";
    return Schema()
        .text("images", start + "-images-idx3-ubyte.gz",
              "IDX file of images (count x height x width, or count x height x width x channels), "
              "plain or .gz")
        .as_path()
        .text("labels", start + "-labels-idx1-ubyte.gz", "IDX file of labels, plain or .gz")
        .as_path();
  };
  def.names_data = [](const Settings& split) { return !split.text("images").empty(); };
  def.open = open_idx;
}

}  // namespace fleet::data
