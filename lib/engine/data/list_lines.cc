#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/file.h"
#include "base/regular_file.h"
#include "base/text_file.h"
#include "data/image_files.h"

namespace fleet::data {

void for_each_line(const std::string& list, const std::function<void(std::string_view)>& body) {
  constexpr size_t kLongest = 8192, kPiece = 1 << 16;
  const RegularFile file = open_regular_file(list);
  std::string rest;  // the incomplete line at the end of the buffer
  int64_t number = 0;
  for (;;) {
    char piece[kPiece];
    const ssize_t got = ::read(file.fd.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("cannot read the list", list);
    const bool first = number == 0 && rest.empty();
    rest.append(piece, static_cast<size_t>(got));
    if (first) rest.erase(0, size_of_mark(rest, list));
    size_t start = 0;
    for (size_t end; (end = rest.find('\n', start)) != std::string::npos; start = end + 1) {
      ++number;
      body(std::string_view(rest).substr(start, end - start));
    }
    rest.erase(0, start);
    if (rest.size() > kLongest || rest.find('\0') != std::string::npos) {
      throw Error(ErrorCode::kUsage, "the line is not text, or is longer than a path can be",
                  list + ":" + std::to_string(number + 1), "give a list of \"path label\" lines");
    }
    if (got == 0) break;
  }
  if (!rest.empty()) body(rest);
}

}  // namespace fleet::data
