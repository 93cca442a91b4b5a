#include "text/gzip_text.h"

#include <zlib.h>

#include "base/error.h"
#include "base/regular_file.h"

namespace fleet::text {

struct GzipText::State {
  std::string path;
  gzFile file = nullptr;
};

GzipText::GzipText(const std::string& path) : state_(std::make_unique<State>()) {
  RegularFile file = open_regular_file(path);
  state_->path = path;
  state_->file = ::gzdopen(file.fd.get(), "rb");
  if (!state_->file) throw Error(ErrorCode::kNoMemory, "cannot decompress the file", path);
  file.fd.release();  // gzclose() closes it
  ::gzbuffer(state_->file, 1 << 18);
}

GzipText::~GzipText() { ::gzclose(state_->file); }

size_t GzipText::read(std::string* text, size_t bytes) {
  const size_t before = text->size();
  text->resize(before + bytes);
  const int got = ::gzread(state_->file, text->data() + before, static_cast<unsigned>(bytes));
  int status = Z_OK;
  const char* reason = ::gzerror(state_->file, &status);
  // A file that ends early gives its bytes, and then this status.
  if (got < 0 || (got < static_cast<int>(bytes) && status == Z_BUF_ERROR)) {
    const std::string why = status == Z_BUF_ERROR ? "it ends early" : reason;
    throw Error(ErrorCode::kUsage, "cannot decompress the file: " + why, state_->path,
                "get the file again");
  }
  text->resize(before + static_cast<size_t>(got));
  return static_cast<size_t>(got);
}

int64_t GzipText::compressed_bytes() const { return ::gzoffset(state_->file); }

}  // namespace fleet::text
