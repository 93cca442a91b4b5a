#include "viewing/trace/job_trace.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/text.h"

namespace fleet {
namespace {

// The text up to the separator, which it removes too.
std::string_view take_field(std::string_view* line) {
  const size_t end = std::min(line->find('\t'), line->size());
  const std::string_view field = line->substr(0, end);
  line->remove_prefix(std::min(end + 1, line->size()));
  return field;
}

void read_line(std::string_view line, RankTrace* into) {
  const std::string_view what = take_field(&line);
  long long number = 0;
  if (!parse_int(take_field(&line), &number) || number < 0 || number > UINT32_MAX) return;
  if (what == "track") into->tracks[static_cast<uint32_t>(number)] = take_field(&line);
  if (what != "name") return;
  ActivityName& name = into->names[static_cast<uint32_t>(number)];
  name.category = take_field(&line);
  name.name = take_field(&line);
  name.detail = take_field(&line);
  name.key = take_field(&line);
}

}  // namespace

void RankTrace::add(const wire::TracePiece& piece) {
  text += piece.text();
  text_bytes += piece.text().size();
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    read_line(std::string_view(text).substr(begin, end - begin), this);
  }
  text.erase(0, begin);
  const size_t count = piece.records().size() / sizeof(TraceRecord);
  const size_t before = records.size();
  records.resize(before + count);
  std::memcpy(records.data() + before, piece.records().data(), count * sizeof(TraceRecord));
}

}  // namespace fleet
