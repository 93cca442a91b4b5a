#include "launch/planning/node_list.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/home_folder.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "base/text_file.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

constexpr size_t kMaxListedNodes = 65536;
constexpr int kMaxDevices = 4096;
constexpr size_t kMaxNodeName = 255;  // characters of a host name
constexpr size_t kMaxDigits = 18;     // digits of a number in a range: none can overflow
constexpr long kMaxRanges = 8;        // ranges in a name

[[noreturn]] void refuse_entry(const std::string& what, const std::string& entry,
                               const std::string& origin) {
  constexpr size_t kMaxShown = 200;
  const std::string shown = entry.size() > kMaxShown ? entry.substr(0, kMaxShown) + "..." : entry;
  refuse(what, origin + " " + shown,
         "write it like 10.0.0.1,10.0.0.2 or node[01-16] or node1:8,node2:4 or @hostfile");
}

// Splits at commas outside brackets.
std::vector<std::string> split_entries(const std::string& list) {
  std::vector<std::string> entries(1);
  int depth = 0;
  for (const char c : list) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth <= 0) {
      entries.emplace_back();
    } else {
      entries.back() += c;
    }
  }
  for (std::string& entry : entries) entry = trim(entry);
  return entries;
}

int parse_count(std::string_view text, const std::string& entry, const std::string& origin) {
  long long count = 0;
  if (!parse_int(text, &count) || count < 1 || count > kMaxDevices) {
    refuse_entry("'" + std::string(text) + "' is not a number of GPUs", entry, origin);
  }
  return static_cast<int>(count);
}

// Splits "host:8" into its parts.
ListedNode split_count(const std::string& entry, const std::string& origin) {
  const size_t colon = entry.rfind(':');
  if (entry.starts_with('[') && entry.find(':') < entry.find(']')) {  // [fd00::1] or [fd00::1]:8
    const size_t close = entry.find(']');
    if (close == std::string::npos || (close + 1 < entry.size() && entry[close + 1] != ':')) {
      refuse_entry("the brackets of an IPv6 address do not match", entry, origin);
    }
    ListedNode node{entry.substr(1, close - 1), 0};
    if (close + 1 < entry.size()) {
      node.devices = parse_count(std::string_view(entry).substr(close + 2), entry, origin);
    }
    return node;
  }
  // Two colons without brackets: the whole entry is an IPv6 address.
  if (colon == std::string::npos || entry.find(':') != colon) return {entry, 0};
  return {entry.substr(0, colon),
          parse_count(std::string_view(entry).substr(colon + 1), entry, origin)};
}

// "01-16,20": "01" ... "16" "20".
std::vector<std::string> numbers_of(const std::string& ranges, const std::string& entry,
                                    const std::string& origin) {
  std::vector<std::string> all;
  if (ranges.empty()) refuse_entry("the brackets are empty", entry, origin);
  for (const std::string& range : split(ranges, ',')) {
    const size_t dash = range.find('-');
    const std::string low = range.substr(0, dash);
    const std::string high = dash == std::string::npos ? low : range.substr(dash + 1);
    long long first = 0, last = 0;
    if (low.size() > kMaxDigits || high.size() > kMaxDigits || !parse_int(low, &first) ||
        !parse_int(high, &last) || first < 0 || last < first) {
      refuse_entry("'" + range + "' is not a range of numbers", entry, origin);
    }
    if (static_cast<unsigned long long>(last - first) >= kMaxListedNodes - all.size()) {
      refuse_entry("the range is too long", entry, origin);
    }
    for (long long number = first; number <= last; ++number) {
      char text[32];
      std::snprintf(text, sizeof text, "%0*lld", static_cast<int>(low.size()), number);
      all.emplace_back(text);
    }
  }
  return all;
}

void add_name(std::string name, const std::string& entry, const std::string& origin,
              std::vector<std::string>* names) {
  if (name.size() > kMaxNodeName) refuse_entry("a host name is too long", entry, origin);
  names->push_back(std::move(name));
}

// Expands a name with ranges; the last range varies fastest.
void expand_ranges(const std::string& name, const std::string& entry, const std::string& origin,
                   std::vector<std::string>* names) {
  const size_t open = name.rfind('['), close = name.find(']', open == std::string::npos ? 0 : open);
  if (open == std::string::npos && close == std::string::npos) {
    return add_name(name, entry, origin, names);
  }
  if (open == std::string::npos || close == std::string::npos) {
    refuse_entry("the brackets do not match", entry, origin);
  }
  std::vector<std::string> heads;
  expand_ranges(name.substr(0, open), entry, origin, &heads);
  const auto numbers = numbers_of(name.substr(open + 1, close - open - 1), entry, origin);
  if (heads.size() * numbers.size() + names->size() > kMaxListedNodes) {
    refuse_entry("there are too many nodes", entry, origin);
  }
  const std::string tail = name.substr(close + 1);
  for (const std::string& head : heads) {
    for (const std::string& number : numbers) {
      add_name(head + number + tail, entry, origin, names);
    }
  }
}

void add_entry(const std::string& entry, const std::string& origin,
               std::vector<ListedNode>* nodes) {
  if (entry.empty()) refuse_entry("an address is empty", entry, origin);
  const ListedNode node = split_count(entry, origin);
  if (node.address.empty() || node.address.find_first_of(" \t") != std::string::npos) {
    refuse_entry("'" + node.address + "' is not an address", entry, origin);
  }
  if (std::count(node.address.begin(), node.address.end(), '[') > kMaxRanges) {
    refuse_entry("a name has too many ranges", entry, origin);
  }
  std::vector<std::string> names;
  expand_ranges(node.address, entry, origin, &names);
  for (std::string& name : names) nodes->push_back({std::move(name), node.devices});
  if (nodes->size() > kMaxListedNodes) refuse_entry("there are too many nodes", entry, origin);
}

// Converts "host slots=8 max_slots=16" of the host files of Open MPI, DeepSpeed and Horovod to
// "host:8".
std::string with_colon(const std::string& line) {
  std::istringstream words(line);
  std::string host, count;
  words >> host;
  for (std::string word; words >> word;) {
    if (word.find('=') == std::string::npos) return line;
    if (word.starts_with("slots=")) count = word.substr(6);
  }
  const bool bare_ipv6 = host.find(':') != host.rfind(':') && !host.starts_with('[');
  if (count.empty()) return host;
  return (bare_ipv6 ? "[" + host + "]" : host) + ":" + count;
}

std::string read_host_file(const std::string& path, const std::string& origin) {
  constexpr int64_t kLargestHostFile = 16 << 20;  // the largest allowed list is smaller
  std::string bytes;
  try {
    bytes = read_small_file(expand_home(path), kLargestHostFile);
  } catch (const Error& error) {
    refuse_entry(error.failure(), "@" + path, origin);
  }
  return plain_text(std::move(bytes), origin + " @" + path);
}

void add_node_file(const std::string& path, const std::string& origin,
                   std::vector<ListedNode>* nodes) {
  int number = 0;
  for (const std::string& line : split(read_host_file(path, origin), '\n')) {
    const std::string where = origin + ", " + path + " line " + std::to_string(++number) + ":";
    const std::string text(trim(line.substr(0, line.find('#'))));
    if (text.empty()) continue;
    for (const std::string& entry : split_entries(with_colon(text))) {
      add_entry(entry, where, nodes);
    }
  }
}

}  // namespace

std::vector<ListedNode> expand_nodes(const std::string& list, const std::string& origin) {
  std::vector<ListedNode> nodes;
  if (trim(list).empty()) return nodes;
  for (const std::string& entry : split_entries(list)) {
    if (entry.starts_with('@')) {
      const size_t before = nodes.size();
      add_node_file(entry.substr(1), origin, &nodes);
      if (nodes.size() == before) refuse_entry("the host file lists no node", entry, origin);
    } else {
      add_entry(entry, origin, &nodes);
    }
  }
  return nodes;
}

void sort_by_address(std::vector<ListedNode>* nodes) {
  const auto order = [](const ListedNode& node) {
    std::string bytes(16, '\0');
    for (const int family : {AF_INET, AF_INET6}) {
      if (::inet_pton(family, node.address.c_str(), bytes.data()) != 1) continue;
      return std::make_pair(family == AF_INET ? 0 : 1, bytes);
    }
    return std::make_pair(2, node.address);
  };
  std::stable_sort(nodes->begin(), nodes->end(),
                   [&](const ListedNode& a, const ListedNode& b) { return order(a) < order(b); });
}

std::string list_text(const std::vector<ListedNode>& nodes) {
  std::vector<std::string> texts;
  for (const ListedNode& node : nodes) {
    const bool ipv6 = node.address.find(':') != std::string::npos;
    const std::string count = node.devices > 0 ? ":" + std::to_string(node.devices) : "";
    texts.push_back((ipv6 && node.devices > 0 ? "[" + node.address + "]" : node.address) + count);
  }
  return join(texts, ",");
}

}  // namespace fleet
