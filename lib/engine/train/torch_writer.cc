#include "train/torch_writer.h"

#include <array>

#include "base/error.h"
#include "base/file.h"

namespace fleet {
namespace {

void append_number(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint32_t crc32_of(std::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> values{};
    for (uint32_t i = 0; i < values.size(); ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xEDB88320U : 0);
      values[i] = value;
    }
    return values;
  }();
  uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<uint8_t>(byte)) & 0xFF];
  return ~crc;
}

// A zip of stored entries, below 4 GiB.
class ZipText {
 public:
  void add(const std::string& name, std::string_view bytes) {
    const size_t at = bytes_.size();
    std::string fields;
    append_number(20, 2, &fields);  // version that can read it
    append_number(0, 8, &fields);   // flags, stored, no time
    append_number(crc32_of(bytes), 4, &fields);
    append_number(bytes.size(), 4, &fields);
    append_number(bytes.size(), 4, &fields);
    append_number(name.size(), 2, &fields);
    // torch.load() may map the file: values begin at a multiple of 64 bytes.
    constexpr size_t kHeader = 30, kAlignment = 64, kField = 4;
    size_t padding = (at + kHeader + name.size() + kField) % kAlignment;
    padding = padding == 0 ? 0 : kAlignment - padding;
    bytes_ += "PK\x03\x04" + fields;
    append_number(kField + padding, 2, &bytes_);
    bytes_ += name + "FB";
    append_number(padding, 2, &bytes_);
    bytes_.append(padding, 'Z');
    bytes_ += bytes;
    directory_ += "PK\x01\x02";
    append_number(20, 2, &directory_);
    directory_ += fields;
    append_number(0, 12, &directory_);  // no extra field, comment, disk or attributes
    append_number(at, 4, &directory_);
    directory_ += name;
    ++entries_;
  }

  std::string finish() {
    const size_t at = bytes_.size();
    bytes_ += directory_ + "PK\x05\x06";
    append_number(0, 4, &bytes_);
    append_number(entries_, 2, &bytes_);
    append_number(entries_, 2, &bytes_);
    append_number(directory_.size(), 4, &bytes_);
    append_number(at, 4, &bytes_);
    append_number(0, 2, &bytes_);
    return std::move(bytes_);
  }

 private:
  std::string bytes_, directory_;
  size_t entries_ = 0;
};

const char* storage_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "FloatStorage";
    case DType::kFloat64:
      return "DoubleStorage";
    case DType::kFloat16:
      return "HalfStorage";
    case DType::kBFloat16:
      return "BFloat16Storage";
    case DType::kInt64:
      return "LongStorage";
    case DType::kInt32:
      return "IntStorage";
    default:
      return "ByteStorage";
  }
}

// Python's pickle, protocol 2.
class PickleText {
 public:
  void begin_dict() { text_ += "\x80\x02}("; }
  std::string end_dict() { return text_ + "u."; }

  void tensor(const std::string& name, size_t number, const HostTensor& tensor) {
    word(name);
    text_ += "ctorch._utils\n_rebuild_tensor_v2\n((";
    word("storage");
    text_ += std::string("ctorch\n") + storage_type(tensor.dtype) + "\n";
    word(std::to_string(number));
    word("cpu");
    integer(tensor.shape.elements());
    text_ += "tQ";
    integer(0);
    text_ += '(';
    for (const int64_t size : tensor.shape) integer(size);
    text_ += "t(";
    for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
      int64_t stride = 1;
      for (int inner = axis + 1; inner < tensor.shape.rank(); ++inner)
        stride *= tensor.shape[inner];
      integer(stride);
    }
    text_ +=
        "t\x89"
        "ccollections\nOrderedDict\n)RtR";
  }

 private:
  void word(const std::string& word) {
    text_ += 'X';
    append_number(word.size(), 4, &text_);
    text_ += word;
  }
  void integer(int64_t value) {
    text_ += "\x8a\x08";
    append_number(static_cast<uint64_t>(value), 8, &text_);
  }

  std::string text_;
};

}  // namespace

void write_torch_file(const std::string& path, const TensorFile& file) {
  constexpr uint64_t kMost = 0xF0000000;
  uint64_t bytes = 0;
  PickleText pickle;
  pickle.begin_dict();
  size_t number = 0;
  for (const auto& [name, tensor] : file.tensors) {
    bytes += static_cast<uint64_t>(tensor.shape.elements()) * size_of(tensor.dtype);
    pickle.tensor(name, number++, tensor);
  }
  if (bytes > kMost) {
    throw Error(ErrorCode::kUnsupported, "weights of 4 GiB or more do not fit into one", path,
                "use a name that ends with .safetensors");
  }
  ZipText zip;
  zip.add("archive/data.pkl", pickle.end_dict());
  zip.add("archive/byteorder", "little");
  number = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const TensorBytes values = tensor.values();
    zip.add("archive/data/" + std::to_string(number++), {values.data(), values.size()});
  }
  zip.add("archive/version", "3\n");
  write_file_atomically(path, zip.finish());
}

}  // namespace fleet
