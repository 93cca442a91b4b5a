// An answer of an HTTP server, in its parts.
#pragma once

#include <cstdlib>
#include <map>
#include <string>

namespace fleet {

struct HttpAnswer {
  int status = 0;  // 0: it is not an answer
  std::map<std::string, std::string> headers;
  std::string body;  // as far as it has come
};

inline HttpAnswer parse_http(const std::string& bytes) {
  HttpAnswer answer;
  const std::string version = "HTTP/1.1 ", line_end = "\r\n", blank_line = "\r\n\r\n";
  const size_t head = bytes.find(blank_line);
  if (!bytes.starts_with(version) || head == std::string::npos) return answer;
  answer.status = std::atoi(bytes.c_str() + version.size());
  answer.body = bytes.substr(head + blank_line.size());
  for (size_t at = bytes.find(line_end) + line_end.size(); at < head;) {
    const size_t end = bytes.find(line_end, at), colon = bytes.find(": ", at);
    if (colon < end)
      answer.headers[bytes.substr(at, colon - at)] = bytes.substr(colon + 2, end - colon - 2);
    at = end + line_end.size();
  }
  return answer;
}

}  // namespace fleet
