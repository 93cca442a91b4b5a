// The files that `fleetrun pack` writes: many samples in one file, each with a checksum.
//
// A folder holds pack.json (PackManifest) and, for each split, files of at most
// PackSplit::file_samples samples in the source's order: train-00000.pack, train-00001.pack, ...
// Numbers are little-endian. A file is
//   magic "FLTPACK1"
//   the bytes of each sample, one after the other
//   the index: for each sample 48 bytes (PackEntry), then all names
//   footer: offset of the index, its bytes, number of samples, CRC-32C of the index, magic
// Samples that could not be used when they were packed keep their place, so that an index names the
// same sample in the source and in the pack.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/file.h"

namespace fleet::data {

enum class PackedKind : uint8_t {
  kFile = 0,     // an image file
  kPixels = 1,   // height x width x channels bytes
  kDamaged = 2,  // the bytes are the reason
};

struct PackEntry {
  uint64_t offset = 0;
  int64_t label = 0;
  uint32_t bytes = 0, checksum = 0;  // CRC-32C of the bytes
  uint32_t name_at = 0, name_bytes = 0;
  uint32_t height = 0, width = 0;  // if kPixels
  PackedKind kind = PackedKind::kFile;
  uint8_t channels = 0;  // if kPixels
  uint8_t unused[6] = {};
};
static_assert(sizeof(PackEntry) == 48);

struct PackSplit {
  int64_t samples = 0;
  int64_t file_samples = 1;  // samples of each file, less in the last one
  std::string fingerprint;   // covers the source's labels and names
  int64_t files() const { return (samples + file_samples - 1) / file_samples; }
  int64_t samples_of(int64_t file) const;
};

struct PackManifest {
  std::string format;  // "raw" or "jpeg"
  int64_t size = 0;    // the shorter side that larger images were resized to; 0: kept
  int64_t channels = 3, quality = 0;
  bool upright = false;  // resized images are turned by their EXIF orientation
  std::vector<std::string> class_names = {};
  std::vector<std::pair<std::string, PackSplit>> splits = {};  // "train", "test"

  const PackSplit* find(const std::string& split) const;
  std::string text() const;  // the content of pack.json
  // kUsage naming the folder if it has no pack.json; kIo if that is damaged.
  static PackManifest read(const std::string& folder);
};

std::string pack_path(const std::string& folder, const std::string& split, int64_t file);

// Writes one file under a temporary name and renames it at the end: no unfinished file appears.
class PackWriter {
 public:
  explicit PackWriter(const std::string& path);
  ~PackWriter();
  PackWriter(const PackWriter&) = delete;
  struct Record {
    std::string_view bytes, name;
    int64_t label = 0;
    PackedKind kind = PackedKind::kFile;
    int height = 0, width = 0, channels = 0;
  };
  void add(const Record& record);
  void finish();  // syncs and renames

 private:
  void write(std::string_view bytes);

  std::string path_, partial_;
  UniqueFd file_;
  uint64_t at_ = 0;
  std::string names_;
  std::vector<PackEntry> entries_;
};

// Immutable: thread-safe.
class PackFile {
 public:
  // Reads and checks the index. kIo naming the path if the file is missing or damaged.
  explicit PackFile(const std::string& path);
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  const PackEntry& entry(int64_t index) const { return entries_[index]; }
  std::string_view name(int64_t index) const;
  // The bytes of a sample, in scratch. kIo naming the file if the checksum is wrong.
  std::string_view read(int64_t index, std::vector<uint8_t>& scratch) const;
  // Reads everything: kIo as above.
  void check_all() const;

 private:
  std::string path_;
  UniqueFd file_;
  std::vector<PackEntry> entries_;
  std::string names_;
};

}  // namespace fleet::data
