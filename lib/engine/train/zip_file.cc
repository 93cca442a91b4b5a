// Reads with minizip over our own descriptor: the path may be a pipe by the time minizip opens it.
#include "train/zip_file.h"

#include <minizip/unzip.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"

namespace fleet {
namespace {

struct Reader {
  int fd;
  int64_t size, at = 0;
};

voidpf open_file(voidpf opaque, const void*, int) { return opaque; }

uLong read_file(voidpf, voidpf stream, void* to, uLong count) {
  auto* reader = static_cast<Reader*>(stream);
  uLong done = 0;
  while (done < count) {
    const ssize_t got =
        ::pread(reader->fd, static_cast<char*>(to) + done, count - done, reader->at);
    if (got <= 0) break;
    done += static_cast<uLong>(got);
    reader->at += got;
  }
  return done;
}

uLong write_file(voidpf, voidpf, const void*, uLong) { return 0; }

ZPOS64_T tell(voidpf, voidpf stream) {
  return static_cast<ZPOS64_T>(static_cast<Reader*>(stream)->at);
}

long seek(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
  auto* reader = static_cast<Reader*>(stream);
  const int64_t from = origin == ZLIB_FILEFUNC_SEEK_END   ? reader->size
                       : origin == ZLIB_FILEFUNC_SEEK_CUR ? reader->at
                                                          : 0;
  const auto to = static_cast<int64_t>(static_cast<uint64_t>(from) + offset);
  if (to < 0 || to > reader->size) return -1;
  reader->at = to;
  return 0;
}

int close_file(voidpf, voidpf stream) {
  delete static_cast<Reader*>(stream);
  return 0;
}

int has_failed(voidpf, voidpf) { return 0; }

}  // namespace

ZipFile::ZipFile(const std::string& path) : path_(path), file_(open_regular_file(path)) {
  auto* reader = new Reader{file_.fd.get(), file_.size};
  zlib_filefunc64_def functions = {open_file, read_file,  write_file, tell,
                                   seek,      close_file, has_failed, reader};
  zip_ = unzOpen2_64(path.c_str(), &functions);
  if (!zip_) bad("truncated: it has no directory of a zip");
  try {
    list();
  } catch (...) {
    unzClose(zip_);
    throw;
  }
}

ZipFile::~ZipFile() {
  if (zip_) unzClose(zip_);
}

void ZipFile::bad(const std::string& what) const {
  throw DamagedFile(what, path_, "it is damaged, or not what torch.save() writes; use another one");
}

void ZipFile::list() {
  constexpr size_t kMaxEntries = 1'000'000;
  for (int code = unzGoToFirstFile(zip_); code == UNZ_OK; code = unzGoToNextFile(zip_)) {
    char name[512] = "";
    unz_file_info64 info;
    unz64_file_pos place;
    if (entries_.size() >= kMaxEntries ||
        unzGetCurrentFileInfo64(zip_, &info, name, sizeof name - 1, nullptr, 0, nullptr, 0) !=
            UNZ_OK ||
        unzGetFilePos64(zip_, &place) != UNZ_OK) {
      bad("its directory is cut off, or too long");
    }
    entries_.try_emplace(name, Position{place.pos_in_zip_directory, place.num_of_file});
  }
}

std::optional<std::string> ZipFile::find(const std::string& ending) const {
  for (const auto& [name, place] : entries_) {
    if (name.ends_with(ending)) return name;
  }
  return std::nullopt;
}

TensorBytes ZipFile::read(const std::string& name, uint64_t most) {
  unz_file_info64 info;
  const auto found = entries_.find(name);
  if (found == entries_.end()) bad("truncated: it has no '" + name + "'");
  unz64_file_pos place{found->second.in_directory, found->second.number};
  if (unzGoToFilePos64(zip_, &place) != UNZ_OK ||
      unzGetCurrentFileInfo64(zip_, &info, nullptr, 0, nullptr, 0, nullptr, 0) != UNZ_OK) {
    bad("its directory is damaged at '" + name + "'");
  }
  const auto size = static_cast<uint64_t>(file_.size);
  if (info.compression_method != 0 || (info.flag & 1) != 0) {
    bad("'" + name + "' is compressed or encrypted");
  }
  if (info.uncompressed_size > size || info.compressed_size != info.uncompressed_size ||
      info.uncompressed_size > most) {
    bad("truncated: '" + name + "' is cut off, or larger than it should be");
  }
  TensorBytes bytes(info.uncompressed_size);
  if (unzOpenCurrentFile(zip_) != UNZ_OK) bad("'" + name + "' cannot be read");
  uint64_t done = 0;
  while (done < bytes.size()) {
    constexpr uint64_t kPiece = uint64_t{1} << 30;
    const auto count = static_cast<unsigned>(std::min<uint64_t>(bytes.size() - done, kPiece));
    const int got = unzReadCurrentFile(zip_, bytes.data() + done, count);
    if (got <= 0) break;
    done += static_cast<uint64_t>(got);
  }
  const int closed = unzCloseCurrentFile(zip_);
  if (done != bytes.size()) bad("truncated: '" + name + "' is cut off");
  if (closed != UNZ_OK) bad("'" + name + "' does not match its checksum");
  return bytes;
}

}  // namespace fleet
