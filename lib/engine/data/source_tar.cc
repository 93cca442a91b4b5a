// WebDataset shards: tar files on a local disk, in which the members of a sample follow each other
// and have its key as their name up to the first dot: 000017.jpg, 000017.cls. The index is read at
// the start; samples are then read in any order.
#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "data/image_files.h"
#include "data/source.h"
#include "data/tar_files.h"

namespace fleet::data {
namespace {

// No image that a decoder accepts, and no label, is larger.
constexpr uint64_t kLargestImage = uint64_t{1} << 30, kLargestLabel = uint64_t{1} << 24;

struct TarSample {
  uint64_t offset = 0;
  int64_t label = 0;
  uint32_t bytes = 0, shard = 0;
  uint32_t name_bytes = 0;
  uint64_t name_at = 0;
};

class TarShards : public Source {
 public:
  TarShards(std::vector<std::string> shards, std::vector<TarSample> samples, std::string names)
      : shards_(std::move(shards)), samples_(std::move(samples)), names_(std::move(names)) {}
  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  int64_t label(int64_t index) const override { return samples_[index].label; }
  Sample read(int64_t index, std::vector<uint8_t>& scratch) const override {
    const TarSample& sample = samples_[index];
    if (scratch.size() < sample.bytes) scratch.resize(sample.bytes);
    read_part(shards_[sample.shard], scratch.data(), sample.bytes, sample.offset);
    return {.bytes = {scratch.data(), sample.bytes}};
  }
  Sample read_start(int64_t index, size_t bytes, std::vector<uint8_t>& scratch) const override {
    const TarSample& sample = samples_[index];
    const auto count = std::min<size_t>(sample.bytes, bytes);
    if (scratch.size() < count) scratch.resize(count);
    read_part(shards_[sample.shard], scratch.data(), count, sample.offset);
    return {.bytes = {scratch.data(), count}};
  }
  std::string name(int64_t index) const override {
    const TarSample& sample = samples_[index];
    return shown_path(shards_[sample.shard]) + ":" +
           shown_path(names_.substr(sample.name_at, sample.name_bytes));
  }

 private:
  const std::vector<std::string> shards_;
  const std::vector<TarSample> samples_;
  const std::string names_;
};

// "a/17" and "seg.png" of "a/17.seg.png".
std::pair<std::string, std::string> key_and_extension(const std::string& name) {
  const size_t slash = name.rfind('/');
  const size_t dot = name.find('.', slash == std::string::npos ? 0 : slash + 1);
  if (dot == std::string::npos) return {name, ""};
  return {name.substr(0, dot), lower_case(name.substr(dot + 1))};
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Reads the index of all shards.
class ShardIndex {
 public:
  explicit ShardIndex(const SourceContext& context) : context_(context) {}

  void add_shard(const std::string& path) {
    path_ = path;
    shard_ = static_cast<uint32_t>(shards_.size());
    shards_.push_back(path);
    const size_t before = samples_.size();
    const int64_t ignored = ignored_.count;
    const TarLayout layout = for_each_tar_member(path, [&](const TarMember& m) { add(m); });
    finish_sample();
    note(layout);
    if (samples_.size() > before) return;
    throw Error(ErrorCode::kUsage,
                ignored_.count == ignored
                    ? "the tar file contains no image with a label"
                    : "the tar file contains images only in hidden or system folders, such as " +
                          ignored_.example,
                path, "write each sample as KEY.jpg and KEY.cls, its class as a number from 0");
  }

  std::unique_ptr<Source> take() {
    if (context_.verbose && without_image_ > 0) {
      spdlog::warn("data.{}.shards: {} samples without an image are skipped, such as {}",
                   context_.train ? "train" : "test", without_image_, example_);
    }
    if (context_.verbose && ignored_.count > 0) {
      spdlog::warn("data.{}.shards: {} in hidden or system folders left out, such as {}",
                   context_.train ? "train" : "test", images_text(ignored_.count),
                   ignored_.example);
    }
    if (context_.verbose) {
      joined_.report(context_, "several archives in one file are all read, as `tar -i` does");
      unmarked_.report(context_, "no end mark; the file ends after a complete member");
    }
    return std::make_unique<TarShards>(std::move(shards_), std::move(samples_), std::move(names_));
  }

 private:
  // Shards with something that deserves one line for all.
  struct Shards {
    int64_t count = 0;
    std::string example;
    void add(const std::string& path) {
      if (count++ == 0) example = shown_path(path);
    }
    void report(const SourceContext& context, const char* what) const {
      if (count == 0) return;
      spdlog::info("data.{}.shards: {} ({}{})", context.train ? "train" : "test", what, example,
                   count == 1 ? "" : " and " + std::to_string(count - 1) + " more");
    }
  };

  void note(const TarLayout& layout) {
    if (layout.archives > 1) joined_.add(path_);
    if (layout.ignored_bytes > 0 && context_.verbose) {
      spdlog::warn(
          "{}: the last {} bytes, from byte {}, are ignored: they follow the end mark, "
          "and do not begin an archive",
          shown_path(path_), layout.ignored_bytes, layout.ignored_at);
    } else if (!layout.has_end_mark) {
      unmarked_.add(path_);
    }
  }

  void add(const TarMember& member) {
    if (in_ignored_folder(member.name)) {
      if (is_image_name(member.name)) {
        if (ignored_.count++ == 0) ignored_.example = shown_path(path_ + ":" + member.name);
      }
      return;
    }
    const auto [key, extension] = key_and_extension(member.name);
    if (key.empty() || key.ends_with('/')) return;  // hidden, such as "._7.jpg" of macOS
    const bool is_label = extension == "cls" || extension == "json";
    // "7.seg.png" belongs to the sample, but is not its picture.
    const bool is_image =
        extension.find('.') == std::string::npos && is_image_name("image." + extension);
    // Joined archives may each number their samples from 0.
    const bool repeats = (is_label || is_image) && contains(used_, member.name);
    if (key != key_ || member.archive != archive_ || repeats) finish_sample();
    key_ = key;
    archive_ = member.archive;
    any_ = true;
    if (is_label || is_image) used_.push_back(member.name);
    if (is_label) {
      labelled_ = true;
      read_label(member, extension == "json");
    }
    if (!is_image || image_) return;
    if (member.size > kLargestImage) {
      throw Error(ErrorCode::kIo, "the image " + shown_name(member.name) + " is too large", path_);
    }
    image_ = member;
  }

  // KEY.cls is a number; KEY.json may have "label" or "cls". The former decides.
  void read_label(const TarMember& member, bool json) {
    if (member.size > kLargestLabel || (json && label_)) return;
    std::string text(member.size, '\0');
    read_part(path_, text.data(), text.size(), member.offset);
    long long label = 0;
    if (json) {
      const auto object = Json::try_parse(text);
      for (const char* name : {"cls", "label"}) {
        const Json* found = object ? object->find(name) : nullptr;
        if (found && found->is_number_integer()) label_ = found->get<int64_t>();
      }
      return;
    }
    if (!parse_int(trim(text), &label)) {
      throw Error(ErrorCode::kUsage, "'" + shown_name(text, 40) + "' is not a class",
                  path_ + ":" + member.name, "write the class as a number from 0");
    }
    label_ = label;
  }

  void finish_sample() {
    if (any_ && !image_) {
      if (without_image_++ == 0) example_ = shown_path(path_) + ":" + shown_path(key_);
    }
    if (image_) {
      const std::string where = path_ + ":" + image_->name;
      if (!label_) {
        throw Error(ErrorCode::kUsage, "the sample has no class", where, way_to_a_class());
      }
      check_label(*label_, context_, where);
      samples_.push_back({.offset = image_->offset,
                          .label = *label_,
                          .bytes = static_cast<uint32_t>(image_->size),
                          .shard = shard_,
                          .name_bytes = static_cast<uint32_t>(image_->name.size()),
                          .name_at = names_.size()});
      names_ += image_->name;
    }
    any_ = labelled_ = false;
    used_.clear();
    image_.reset();
    label_.reset();
  }

  // What to do about a sample without a class: the class may be elsewhere in the file.
  std::string way_to_a_class() const {
    std::string elsewhere;
    for_each_tar_member(path_, [&](const TarMember& member) {
      const auto [key, extension] = key_and_extension(member.name);
      if (key == key_ && (extension == "cls" || extension == "json")) elsewhere = member.name;
    });
    if (elsewhere.empty() || labelled_) {
      return "add " + key_ + ".cls with the class as a number from 0";
    }
    return elsewhere +
           " is at another place of the file: write the members of a sample one after "
           "the other, as `tar --sort=name` does";
  }

  const SourceContext& context_;
  std::string path_, key_, example_, names_;
  uint32_t shard_ = 0;
  int archive_ = 0;
  // This sample so far.
  bool any_ = false, labelled_ = false;  // has a member, has KEY.cls or KEY.json
  std::vector<std::string> used_;        // names of its images and labels
  std::optional<TarMember> image_;
  std::optional<int64_t> label_;
  int64_t without_image_ = 0;
  SkippedFiles ignored_;  // images in hidden folders and those of a system
  Shards joined_, unmarked_;
  std::vector<std::string> shards_;
  std::vector<TarSample> samples_;
};

std::unique_ptr<Source> open_tar(const Settings& split, const SourceContext& context) {
  const std::vector<std::string> patterns = split.texts("shards");
  if (patterns.empty()) return no_test_data(context, "data.test.shards");
  ShardIndex index(context);
  for (const std::string& pattern : patterns) {
    for (const std::string& name : shard_names(pattern, context.root)) {
      index.add_shard(name);
    }
  }
  return index.take();
}

}  // namespace
FLEET_SOURCE(tar) {
  def.schema = [](bool) {
    return Schema()
        .texts("shards", {},
               "WebDataset shards: tar files, with {000..146} or *; relative to data.root. Samples "
               "are KEY.jpg (or another image) and KEY.cls or KEY.json (\"label\")")
        .as_path();
  };
  def.names_data = [](const Settings& split) { return !split.texts("shards").empty(); };
  def.open = open_tar;
}

}  // namespace fleet::data
