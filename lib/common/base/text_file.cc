#include "base/text_file.h"

#include "base/error.h"
#include "base/regular_file.h"

namespace fleet {
namespace {

// The encoding of a text that is not UTF-8; nullptr if nothing says so.
const char* other_encoding(std::string_view start) {
  constexpr std::string_view kLittle("\xFF\xFE\0\0", 4), kBig("\0\0\xFE\xFF", 4);
  if (start.starts_with(kLittle) || start.starts_with(kBig)) return "UTF-32";
  if (start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF")) return "UTF-16";
  // No text contains zero bytes. In UTF-16 every other byte of ASCII letters is one.
  if (start.size() < 4) return nullptr;
  const auto is_letter = [&](size_t at) { return start[at] >= '\t' && start[at] <= '~'; };
  const bool little = is_letter(0) && start[1] == 0 && is_letter(2) && start[3] == 0;
  const bool big = start[0] == 0 && is_letter(1) && start[2] == 0 && is_letter(3);
  return little || big ? "UTF-16" : nullptr;
}

}  // namespace

size_t size_of_mark(std::string_view start, const std::string& where) {
  if (const char* encoding = other_encoding(start)) {
    throw Error(ErrorCode::kUsage, std::string("the text is in ") + encoding, where,
                "save it as UTF-8");
  }
  return start.starts_with("\xEF\xBB\xBF") ? 3 : 0;
}

std::string plain_text(std::string bytes, const std::string& where) {
  bytes.erase(0, size_of_mark(bytes, where));
  if (bytes.find('\r') == std::string::npos) return bytes;
  size_t kept = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    if (bytes[at] == '\r' && at + 1 < bytes.size() && bytes[at + 1] == '\n') continue;
    bytes[kept++] = bytes[at];
  }
  bytes.resize(kept);
  return bytes;
}

std::string read_text_file(const std::string& path, int64_t most) {
  return plain_text(read_regular_file(path, most), path);
}

}  // namespace fleet
