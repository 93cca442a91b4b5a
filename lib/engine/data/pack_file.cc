#include "data/pack_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number_text.h"
#include "base/regular_file.h"
#include "base/sync.h"
#include "base/text_file.h"
#include "data/storage.h"

namespace fleet::data {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "FLTPACK1";
constexpr char kManifest[] = "pack.json";
constexpr int kVersion = 1;
constexpr uint32_t kLongestSide = 1 << 24;  // pixels; no product overflows
constexpr char kAgain[] = "run fleetrun pack again: it rewrites damaged and missing files";

struct Footer {
  uint64_t index_at = 0, index_bytes = 0;
  uint32_t count = 0, checksum = 0;
  char magic[8] = {};
};
static_assert(sizeof(Footer) == 32);

[[noreturn]] void damaged(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kIo, "the pack is damaged: " + why, path, kAgain);
}

void read_all_at(const UniqueFd& file, const std::string& path, void* to, size_t bytes,
                 uint64_t at) {
  if (read_at(file, to, bytes, at, path) < bytes) damaged(path, "it ends early");
}

std::string_view as_text(const void* data, size_t bytes) {
  return {static_cast<const char*>(data), bytes};
}

}  // namespace

int64_t PackSplit::samples_of(int64_t file) const {
  return std::min(file_samples, samples - file * file_samples);
}

const PackSplit* PackManifest::find(const std::string& split) const {
  for (const auto& [name, one] : splits) {
    if (name == split) return &one;
  }
  return nullptr;
}

std::string PackManifest::text() const {
  Json json = {{"version", kVersion},  {"format", format},   {"size", size},
               {"channels", channels}, {"quality", quality}, {"class_names", class_names}};
  if (upright) json["upright"] = true;
  for (const auto& [name, split] : splits) {
    json["splits"][name] = {{"samples", split.samples},
                            {"file_samples", split.file_samples},
                            {"fingerprint", split.fingerprint}};
  }
  return json.dump_lossy(1) + "\n";
}

PackManifest PackManifest::read(const std::string& folder) {
  const std::string path = folder + "/" + kManifest;
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) {
    check_answer(unknown.value(), path);
    throw Error(ErrorCode::kUsage, "the folder has no " + std::string(kManifest), folder,
                "set data.root to a folder that fleetrun pack has written");
  }
  constexpr int64_t kMost = int64_t{1} << 28;
  try {
    const auto json = Json::parse(read_text_file(path, kMost));
    if (json.at("version") != kVersion) {
      throw Error(ErrorCode::kUsage, "version " + json.at("version").dump() + " of packs", path,
                  "use the release of fleetrun that wrote it, or pack the images again");
    }
    PackManifest manifest{.format = json.at("format").get<std::string>(),
                          .size = json.at("size").get<int64_t>(),
                          .channels = json.at("channels").get<int64_t>(),
                          .quality = json.at("quality").get<int64_t>(),
                          .upright = json.contains("upright") && json.at("upright").get<bool>(),
                          .class_names = json.at("class_names").get<std::vector<std::string>>()};
    for (const auto& [name, split] : json.at("splits").items()) {
      const PackSplit one{.samples = split.at("samples").get<int64_t>(),
                          .file_samples = split.at("file_samples").get<int64_t>(),
                          .fingerprint = split.at("fingerprint").get<std::string>()};
      if (one.samples < 1 || one.file_samples < 1) damaged(path, "it has an impossible number");
      manifest.splits.emplace_back(name, one);
    }
    return manifest;
  } catch (const JsonError&) {
    damaged(path, "it is not what fleetrun pack writes");
  }
}

std::string pack_path(const std::string& folder, const std::string& split, int64_t file) {
  return folder + "/" + split + format_printf("-%05lld.pack", static_cast<long long>(file));
}

PackWriter::PackWriter(const std::string& path)
    : path_(path),
      partial_(path + ".partial"),
      file_(::open(partial_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666)) {
  if (!file_) throw_errno("cannot create the file", partial_);
  write(kMagic);
}

PackWriter::~PackWriter() {
  if (file_) ::unlink(partial_.c_str());
}

void PackWriter::write(std::string_view bytes) {
  at_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t done = ::write(file_.get(), bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw_errno("cannot write the pack", partial_);
    bytes.remove_prefix(static_cast<size_t>(done));
  }
}

void PackWriter::add(const Record& record) {
  entries_.push_back({.offset = at_,
                      .label = record.label,
                      .bytes = static_cast<uint32_t>(record.bytes.size()),
                      .checksum = crc32c(record.bytes),
                      .name_at = static_cast<uint32_t>(names_.size()),
                      .name_bytes = static_cast<uint32_t>(record.name.size()),
                      .height = static_cast<uint32_t>(record.height),
                      .width = static_cast<uint32_t>(record.width),
                      .kind = record.kind,
                      .channels = static_cast<uint8_t>(record.channels)});
  names_ += record.name;
  write(record.bytes);
}

void PackWriter::finish() {
  const std::string_view entries = as_text(entries_.data(), entries_.size() * sizeof(PackEntry));
  Footer footer{.index_at = at_,
                .index_bytes = entries.size() + names_.size(),
                .count = static_cast<uint32_t>(entries_.size()),
                .checksum = crc32c(names_, crc32c(entries))};
  std::memcpy(footer.magic, kMagic.data(), kMagic.size());
  write(entries);
  write(names_);
  write(as_text(&footer, sizeof footer));
  sync_file(file_.get(), partial_);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) throw_errno("cannot rename the pack", path_);
  file_.reset();
}

PackFile::PackFile(const std::string& path) : path_(path) {
  RegularFile file;
  try {
    file = open_regular_file(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw Error(ErrorCode::kIo, "the pack is incomplete: this file is missing", path, kAgain);
  }
  file_ = std::move(file.fd);
  Footer footer;
  const auto size = static_cast<uint64_t>(file.size);
  if (size < kMagic.size() + sizeof footer) damaged(path, "it is too short");
  read_all_at(file_, path, &footer, sizeof footer, size - sizeof footer);
  const uint64_t entries = uint64_t{footer.count} * sizeof(PackEntry);
  if (as_text(footer.magic, sizeof footer.magic) != kMagic || footer.index_at > size ||
      footer.index_bytes != size - sizeof footer - footer.index_at ||
      entries > footer.index_bytes) {
    damaged(path, "its end is not that of a pack");
  }
  entries_.resize(footer.count);
  names_.resize(footer.index_bytes - entries);
  read_all_at(file_, path, entries_.data(), entries, footer.index_at);
  read_all_at(file_, path, names_.data(), names_.size(), footer.index_at + entries);
  if (crc32c(names_, crc32c(as_text(entries_.data(), entries))) != footer.checksum) {
    damaged(path, "its index has a wrong checksum");
  }
  for (const PackEntry& entry : entries_) {
    const bool fits = entry.offset <= footer.index_at &&
                      entry.bytes <= footer.index_at - entry.offset &&
                      uint64_t{entry.name_at} + entry.name_bytes <= names_.size();
    const bool small = entry.height <= kLongestSide && entry.width <= kLongestSide;
    const bool pixels = entry.kind != PackedKind::kPixels ||
                        (small && entry.bytes > 0 &&
                         uint64_t{entry.height} * entry.width * entry.channels == entry.bytes);
    if (!fits || !pixels || entry.kind > PackedKind::kDamaged) {
      damaged(path, "its index is inconsistent");
    }
  }
}

std::string_view PackFile::name(int64_t index) const {
  const PackEntry& entry = entries_[index];
  return std::string_view(names_).substr(entry.name_at, entry.name_bytes);
}

std::string_view PackFile::read(int64_t index, std::vector<uint8_t>& scratch) const {
  const PackEntry& entry = entries_[index];
  constexpr size_t kBehind = 64;  // readable, as Pixels requires
  if (scratch.size() < entry.bytes + kBehind) scratch.resize(entry.bytes + kBehind);
  try {
    read_all_at(file_, path_, scratch.data(), entry.bytes, entry.offset);
  } catch (const SystemError&) {  // a descriptor of before a server's restart stays stale
    const RegularFile again = open_regular_file(path_);
    read_all_at(again.fd, path_, scratch.data(), entry.bytes, entry.offset);
  }
  const std::string_view bytes = as_text(scratch.data(), entry.bytes);
  if (crc32c(bytes) != entry.checksum) {
    damaged(path_, "sample " + std::to_string(index) + " has a wrong checksum");
  }
  return bytes;
}

void PackFile::check_all() const {
  std::vector<uint8_t> scratch;
  for (int64_t i = 0; i < size(); ++i) read(i, scratch);
}

}  // namespace fleet::data
