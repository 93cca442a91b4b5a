#include "train/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number_text.h"
#include "base/owned_file.h"
#include "base/sync.h"
#include "tensor/relayout.h"

namespace fleet {
namespace {

struct TypeName {
  DType dtype;
  const char* name;
};
constexpr TypeName kTypes[] = {{DType::kFloat32, "F32"}, {DType::kFloat64, "F64"},
                               {DType::kFloat16, "F16"}, {DType::kBFloat16, "BF16"},
                               {DType::kInt64, "I64"},   {DType::kInt32, "I32"},
                               {DType::kUInt8, "U8"}};

const char* type_name(DType dtype) {
  for (const TypeName& type : kTypes) {
    if (type.dtype == dtype) return type.name;
  }
  return "";
}

[[noreturn]] void bad_file(const std::string& path, const std::string& what) {
  throw DamagedFile(
      what, path,
      "it is damaged, or neither a safetensors nor a torch.save() file; use another one");
}

// A file: in memory as a whole, or its header only.
struct HeaderContent {
  std::shared_ptr<char[]> memory;
  std::shared_ptr<UniqueFd> file;  // if values are read later
  size_t size = 0;
  size_t header = 0;     // bytes of its header
  std::string checksum;  // the whole file's, if its metadata has one

  std::string_view all() const { return {memory.get(), size}; }
};

constexpr size_t kLength = sizeof(uint64_t);  // the header's length
// The limit of safetensors' own reader.
constexpr uint64_t kLargestHeader = 100'000'000;
constexpr int kDeepestHeader = 8;

// Whether a file of so many bytes can hold the elements. A product of any other sizes may overflow.
bool tensor_fits(const Shape& shape, size_t bytes) {
  const auto most = static_cast<int64_t>(bytes);
  int64_t elements = 1;
  for (const int64_t size : shape) {
    if (size < 0 || (size > 0 && elements > most / size)) return false;
    elements *= std::max<int64_t>(size, 1);
  }
  return true;
}

const TypeName* find_type(const std::string& name) {
  const auto found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const TypeName& type) { return name == type.name; });
  return found == std::end(kTypes) ? nullptr : &*found;
}

// Where the values are, from the first byte behind the header on.
struct DataRange {
  uint64_t begin = 0, end = 0;
};

DataRange range_of(const std::string& path, const std::string& name, const Json& entry,
                   const HeaderContent& content) {
  const auto place = entry.at("data_offsets").get<std::vector<uint64_t>>();
  if (place.size() != 2 || place[0] > place[1]) {
    bad_file(path, "tensor '" + name + "' does not fit its shape");
  }
  if (place[1] > content.size - kLength - content.header)
    bad_file(path, "truncated: tensor '" + name + "' is cut off");
  return {place[0], place[1]};
}

// The format gets new types: all names of its form count as one, and the position is checked.
std::string parse_foreign(const std::string& path, const std::string& name, const Json& entry,
                          const HeaderContent& content) {
  const auto type = entry.at("dtype").get<std::string>();
  constexpr const char* kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  if (type.empty() || type.size() > 32 || type.find_first_not_of(kLetters) != std::string::npos) {
    bad_file(path, "tensor '" + name + "' has the unknown type " + type);
  }
  range_of(path, name, entry, content);
  return type;
}

HostTensor parse_tensor(const std::string& path, const std::string& name, const Json& entry,
                        DType dtype, const HeaderContent& content) {
  const size_t begin = kLength + content.header;
  HostTensor tensor;
  tensor.dtype = dtype;
  const auto dims = entry.at("shape").get<std::vector<int64_t>>();
  if (dims.size() > Shape::kMaxRank)
    bad_file(path, "tensor '" + name + "' has too many dimensions");
  tensor.shape = Shape(std::span<const int64_t>(dims));
  if (!tensor_fits(tensor.shape, content.size))
    bad_file(path, "tensor '" + name + "' has impossible sizes");
  const uint64_t bytes = tensor.shape.elements() * size_of(tensor.dtype);
  const DataRange place = range_of(path, name, entry, content);
  if (place.end - place.begin != bytes) {
    bad_file(path, "tensor '" + name + "' does not fit its shape");
  }
  if (content.file) {
    tensor.load = [=, file = content.file, offset = begin + place.begin] {
      TensorBytes values(bytes);
      if (read_at(*file, values.data(), bytes, offset, path) < bytes) {
        bad_file(path, "truncated while it was read");
      }
      return values;
    };
    return tensor;
  }
  char* const data = content.memory.get() + begin + place.begin;
  if (reinterpret_cast<uintptr_t>(data) % size_of(tensor.dtype) == 0) {
    tensor.data = TensorBytes(content.memory, data, bytes);
  } else {
    tensor.data = TensorBytes(bytes);
    std::memcpy(tensor.data.data(), data, bytes);
  }
  return tensor;
}

constexpr char kFileChecksum[] = "crc32c";
constexpr char kNoChecksum[] = "00000000";

// The position of the checksum's digits in the header: metadata comes first, with its keys in
// order.
size_t place_of_checksum(std::string_view header) {
  const std::string before = std::string("\"") + kFileChecksum + "\":\"";
  const size_t found = header.find(before);
  const size_t place = found + before.size();
  return found == std::string_view::npos || place + 8 > header.size() ? std::string_view::npos
                                                                      : place;
}

std::string digits_of(uint32_t checksum) { return format_printf("%08x", checksum); }

// The checksum of the start of the file, with zeros in place of the checksum.
uint32_t checksum_of_start(std::string_view length_and_header, size_t place) {
  const uint32_t before = crc32c(kNoChecksum, crc32c(length_and_header.substr(0, place)));
  return crc32c(length_and_header.substr(place + 8), before);
}

void check_checksum(const std::string& path, const HeaderContent& content, TensorFile* file,
                    Checksum checksum) {
  const auto found = file->metadata.find(kFileChecksum);
  if (found == file->metadata.end()) {
    if (checksum == Checksum::kRequired) bad_file(path, "has no checksum");
    return;
  }
  if (content.checksum != found->second) bad_file(path, "its content does not match its checksum");
  file->metadata.erase(found);
}

// Size of one read or write: small enough to stay in the caches until it is summed.
constexpr size_t kReadPiece = size_t{1} << 18;

// Not initialized. Uses huge pages, because creating small ones takes most of the time of reading.
std::shared_ptr<char[]> make_memory(size_t size) {
  constexpr size_t kHugePage = size_t{2} << 20;
  if (size < kHugePage) return std::make_shared_for_overwrite<char[]>(size);
  const size_t whole = (size + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = std::aligned_alloc(kHugePage, whole);
  if (!memory) throw std::bad_alloc();
  ::madvise(memory, whole, MADV_HUGEPAGE);
  return {static_cast<char*>(memory), std::free};
}

// whole: if false, keeps the header only.
HeaderContent read_content(const std::string& path, bool whole) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    throw Error(code, std::string("cannot open the file: ") + std::strerror(errno), path);
  }
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) throw_errno("cannot inspect the file", path);
  if (!S_ISREG(status.st_mode)) bad_file(path, "it is not a regular file");
  const auto size = static_cast<size_t>(status.st_size);
  HeaderContent content{.memory = make_memory(whole ? std::max(size, kLength) : kLength),
                        .file = {}};
  const auto read_to = [&](size_t end) {
    content.size +=
        read_at(fd, content.memory.get() + content.size, end - content.size, content.size, path);
    return content.size == end;
  };
  if (size < kLength || !read_to(kLength)) bad_file(path, "truncated: no header");
  uint64_t header = 0;
  std::memcpy(&header, content.memory.get(), kLength);
  if (!whole && header <= std::min<uint64_t>(size, kLargestHeader)) {
    const auto larger = make_memory(kLength + header + kReadPiece);
    std::memcpy(larger.get(), content.memory.get(), kLength);
    content.memory = larger;
  }
  if (header > size - kLength || header > kLargestHeader || !read_to(kLength + header)) {
    bad_file(path, "truncated: the header is cut off");
  }
  content.header = header;
  // Checked before reading the rest.
  if (header == 0 || content.all()[kLength] != '{') {
    bad_file(path, "the header is not that of a safetensors file");
  }
  const size_t place = place_of_checksum(content.all());
  uint32_t sum = 0;
  if (place != std::string_view::npos) sum = checksum_of_start(content.all(), place);
  if (!whole && place == std::string_view::npos) {  // nothing to compare: values are read later
    content.size = size;
    content.file = std::make_shared<UniqueFd>(std::move(fd));
    return content;
  }
  char* const rest = content.memory.get() + content.size;
  const size_t begin = content.size;
  for (bool more = true; more && content.size < size;) {
    const size_t piece = std::min(size - content.size, kReadPiece);
    char* const to = whole ? rest + (content.size - begin) : rest;
    const size_t got = read_at(fd, to, piece, content.size, path);
    if (place != std::string_view::npos) sum = crc32c({to, got}, sum);
    content.size += got;
    more = got == piece;
  }
  if (!whole) content.file = std::make_shared<UniqueFd>(std::move(fd));
  if (place != std::string_view::npos) content.checksum = digits_of(sum);
  return content;
}

// A file that is written sequentially under a temporary name and then renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path)
      : path_(path), aside_(path + ".part." + std::to_string(::getpid())) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
    fd_ = UniqueFd(::open(aside_.c_str(), kFlags, 0644));
    if (!fd_) throw_errno("cannot create the file", path);
  }
  ~TemporaryFile() {
    if (fd_) ::unlink(aside_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;

  void write(std::string_view bytes) { write_all(fd_.get(), bytes, path_); }
  void write_at(size_t place, std::string_view bytes) {
    if (::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(place)) !=
        static_cast<ssize_t>(bytes.size())) {
      throw_errno("cannot write the file", path_);
    }
  }
  void finish() {
    sync_file(fd_.get(), path_);
    if (::rename(aside_.c_str(), path_.c_str()) != 0) {
      throw_errno("cannot rename the new file into place", path_);
    }
    fd_.reset();
  }

 private:
  const std::string path_, aside_;
  UniqueFd fd_;
};

// Passes on the tensor's values, row-major, one piece at a time.
void for_each_piece(const HostTensor& tensor, std::vector<char>* scratch,
                    const std::function<void(std::string_view)>& action) {
  const size_t width = size_of(tensor.dtype);
  const auto elements = static_cast<size_t>(tensor.shape.elements());
  if (!tensor.layout || tensor.layout->is_plain()) {
    const TensorBytes values = tensor.values();
    const std::string_view all(values.data(), elements * width);
    for (size_t at = 0; at < all.size(); at += kReadPiece) action(all.substr(at, kReadPiece));
    return;
  }
  const Relayout copy(tensor.shape, width, *tensor.layout, Layout::plain(tensor.shape));
  const int64_t rows = std::max<int64_t>(copy.rows(), 1), step = copy.row_step();
  const size_t row = elements * width / static_cast<size_t>(rows);
  const int64_t fit = static_cast<int64_t>(kReadPiece / std::max<size_t>(row, 1));
  const int64_t at_once = std::max(step, fit / step * step);
  for (int64_t begin = 0; begin < rows; begin += at_once) {
    const int64_t end = std::min(rows, begin + at_once);
    const size_t bytes = static_cast<size_t>(end - begin) * row;
    if (scratch->size() < bytes) scratch->resize(bytes);
    copy.run(begin, end, tensor.data.data(), scratch->data());
    action({scratch->data(), bytes});
  }
}

}  // namespace

TensorBytes::TensorBytes(const std::vector<char>& bytes) : TensorBytes(bytes.size()) {
  std::memcpy(data_, bytes.data(), bytes.size());
}

void write_safetensors(const std::string& path, const TensorFile& file) {
  Json header = Json::object();
  std::map<std::string, std::string> metadata = file.metadata;
  metadata[kFileChecksum] = kNoChecksum;
  header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const auto dims = tensor.shape.dims();
    const uint64_t bytes = tensor.shape.elements() * size_of(tensor.dtype);
    header[name] = {{"dtype", type_name(tensor.dtype)},
                    {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                    {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  text.insert(0, reinterpret_cast<const char*>(&length), sizeof length);
  const size_t place = place_of_checksum(text);
  uint32_t sum = checksum_of_start(text, place);
  TemporaryFile out(path);
  out.write(text);
  std::vector<char> scratch;
  for (const auto& [name, tensor] : file.tensors) {
    for_each_piece(tensor, &scratch, [&](std::string_view piece) {
      sum = crc32c(piece, sum);
      out.write(piece);
    });
  }
  out.write_at(place, digits_of(sum));
  out.finish();
}

static TensorFile parse_header(const std::string& path, const HeaderContent& content,
                               Checksum checksum) {
  TensorFile file;
  try {
    const auto check = [&](JsonEvent, int depth, const std::string&) {
      if (depth > kDeepestHeader) bad_file(path, "its header is nested too deeply");
    };
    const std::string_view text(content.memory.get() + kLength, content.header);
    const Json header = Json::parse(text, check);
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        file.metadata = entry.get<std::map<std::string, std::string>>();
      } else if (const auto* type = find_type(entry.at("dtype").get<std::string>())) {
        file.tensors.emplace(name, parse_tensor(path, name, entry, type->dtype, content));
      } else {
        file.foreign.emplace(name, parse_foreign(path, name, entry, content));
      }
    }
  } catch (const JsonError&) {
    bad_file(path, "the header is not that of a safetensors file");
  }
  check_checksum(path, content, &file, checksum);
  return file;
}

TensorFile read_safetensors(const std::string& path, Checksum checksum) {
  return parse_header(path, read_content(path, true), checksum);
}

TensorFile open_safetensors(const std::string& path, Checksum checksum) {
  return parse_header(path, read_content(path, false), checksum);
}

}  // namespace fleet
