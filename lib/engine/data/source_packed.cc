// The files that `fleetrun pack` has written (pack_file.h).
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/terminal_text.h"
#include "data/pack_file.h"
#include "data/pipeline.h"
#include "data/source.h"

namespace fleet::data {
namespace {

class Packed : public Source {
 public:
  Packed(const PackSplit& split, std::vector<std::unique_ptr<PackFile>> files,
         std::vector<std::string> class_names)
      : split_(split), files_(std::move(files)), class_names_(std::move(class_names)) {}

  int64_t size() const override { return split_.samples; }
  int64_t label(int64_t index) const override { return file(index).entry(place(index)).label; }
  Sample read(int64_t index, std::vector<uint8_t>& scratch) const override {
    const PackFile& in = file(index);
    const PackEntry& entry = in.entry(place(index));
    const std::string_view text = in.read(place(index), scratch);
    if (entry.kind == PackedKind::kDamaged) {
      throw Error(ErrorCode::kIo, "it was damaged when it was packed: " + std::string(text),
                  name(index));
    }
    Sample sample{.bytes = {reinterpret_cast<const uint8_t*>(text.data()), text.size()}};
    if (entry.kind == PackedKind::kFile) return sample;
    sample.encoded = false;
    sample.height = static_cast<int>(entry.height);
    sample.width = static_cast<int>(entry.width);
    sample.channels = entry.channels;
    return sample;
  }
  // Of pixels the index has the size.
  Sample read_start(int64_t index, size_t, std::vector<uint8_t>& scratch) const override {
    const PackEntry& entry = file(index).entry(place(index));
    if (entry.kind != PackedKind::kPixels) return read(index, scratch);
    return {.encoded = false,
            .height = static_cast<int>(entry.height),
            .width = static_cast<int>(entry.width),
            .channels = entry.channels};
  }
  std::string name(int64_t index) const override {
    return std::string(file(index).name(place(index)));
  }
  std::vector<std::string> class_names() const override { return class_names_; }

 private:
  const PackFile& file(int64_t index) const { return *files_[index / split_.file_samples]; }
  int64_t place(int64_t index) const { return index % split_.file_samples; }

  const PackSplit split_;
  const std::vector<std::unique_ptr<PackFile>> files_;
  const std::vector<std::string> class_names_;
};

// Made pixels and JPEGs have no note any more, so a job must treat the copied files like them.
void check_upright(const PackManifest& manifest, const SourceContext& context) {
  const bool makes = manifest.format == "raw" || manifest.size > 0;
  if (!makes || manifest.upright == makes_upright(*context.data)) return;
  throw Error(ErrorCode::kUsage,
              "the pack " + shown_path(context.root) +
                  " was made with data.exif=" + (manifest.upright ? "apply" : "ignore"),
              "data.exif", "set it likewise, or pack again");
}

std::unique_ptr<Source> open_packed(const Settings& settings, const SourceContext& context) {
  const std::string& name = settings.text("split");
  const std::string key = context.train ? "data.train.split" : "data.test.split";
  if (name.empty()) return no_test_data(context, key);
  if (context.root.empty()) {
    throw Error(ErrorCode::kUsage, "the folder of the packed images is not given", "data.root",
                "set it to the folder that fleetrun pack has written");
  }
  const PackManifest manifest = PackManifest::read(context.root);
  check_upright(manifest, context);
  const PackSplit* split = manifest.find(name);
  if (!split) {
    if (!context.train && !settings.given("split")) {
      return no_test_data(context, key, " (the pack has no part '" + name + "')");
    }
    throw Error(ErrorCode::kUsage,
                "the pack " + shown_path(context.root) + " has no part '" + shown_name(name) + "'",
                key, "set it to one of pack.json's splits");
  }
  std::vector<std::unique_ptr<PackFile>> files;
  for (int64_t i = 0; i < split->files(); ++i) {
    const std::string path = pack_path(context.root, name, i);
    files.push_back(std::make_unique<PackFile>(path));
    if (files.back()->size() != split->samples_of(i)) {
      throw Error(ErrorCode::kIo,
                  "the pack is damaged: " + std::to_string(files.back()->size()) +
                      " samples instead of " + std::to_string(split->samples_of(i)),
                  path, "run fleetrun pack again into a new folder");
    }
    for (int64_t s = 0; s < files.back()->size(); ++s) {
      check_label(files.back()->entry(s).label, context, path);
    }
  }
  std::vector<std::string> class_names;
  for (const std::string& one : manifest.class_names) class_names.push_back(shown_path(one));
  return std::make_unique<Packed>(*split, std::move(files), std::move(class_names));
}

}  // namespace
FLEET_SOURCE(packed) {
  def.schema = [](bool train) {
    return Schema().text("split", train ? "train" : "test",
                         "Name of a split in data.root, the folder that fleetrun pack has written");
  };
  def.names_data = [](const Settings& split) { return !split.text("split").empty(); };
  def.open = open_packed;
}

}  // namespace fleet::data
