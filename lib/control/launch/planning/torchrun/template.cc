#include "launch/planning/torchrun/template.h"

#include <cctype>

namespace fleet {
namespace {

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool continues_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

std::string fill_template(const std::string& text,
                          const std::map<std::string, std::string>& values) {
  std::string filled;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$' || at + 1 == text.size()) {
      filled += text[at++];
      continue;
    }
    if (text[at + 1] == '$') {
      filled += '$';
      at += 2;
      continue;
    }
    const bool braced = text[at + 1] == '{';
    const size_t begin = at + (braced ? 2 : 1);
    size_t end = begin;
    if (end < text.size() && begins_name(text[end])) {
      while (end < text.size() && continues_name(text[end])) ++end;
    }
    const bool closed = !braced || (end < text.size() && text[end] == '}');
    const auto found = values.find(text.substr(begin, end - begin));
    if (end == begin || !closed || found == values.end()) {
      filled += text[at++];
      continue;
    }
    filled += found->second;
    at = end + (braced ? 1 : 0);
  }
  return filled;
}

}  // namespace fleet
